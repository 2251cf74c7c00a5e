
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
j
dDilation2DBackpropFilterxkg*
strides
*
T0*
paddingSAME*
rates
"Ê