
.
xPlaceholder*
dtype0*
shape:2

opSpencex*
T0"Ê