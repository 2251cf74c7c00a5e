
Q
xPlaceholder*
dtype0*2
shape):'ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
#
IFFT2DIFFT2Dx*
Tcomplex0"Ê