
:
xPlaceholder*
dtype0*
shape:
6
kPlaceholder*
dtype0*
shape:
:
gPlaceholder*
dtype0*
shape:
i
dDilation2DBackpropInputxkg*
strides
*
T0*
paddingSAME*
rates
"Ê