
Q
xPlaceholder*
dtype0*2
shape):'ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
6
e	EncodePngx*
compressionÿÿÿÿÿÿÿÿÿ*
T0

yIdentitye*
T0"Ê