
.
xPlaceholder*
dtype0*
shape:
.
yPlaceholder*
dtype0*
shape:

z	LeftShiftxy*
T0"Ê