
H
inputPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
#
opIFFT2Dinput*
Tcomplex0"Ê