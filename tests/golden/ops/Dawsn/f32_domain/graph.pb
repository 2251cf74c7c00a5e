
.
xPlaceholder*
dtype0*
shape:0

opDawsnx*
T0"Ê