
.
xPlaceholder*
dtype0*
shape:0

opExpintx*
T0"Ê