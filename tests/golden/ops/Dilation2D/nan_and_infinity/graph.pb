
:
xPlaceholder*
dtype0*
shape:
6
kPlaceholder*
dtype0*
shape:
Y
d
Dilation2Dxk*
strides
*
T0*
rates
*
paddingSAME"Ê