
.
xPlaceholder*
dtype0*
shape:
.
yPlaceholder*
dtype0*
shape:

z
RightShiftxy*
T0"Ê