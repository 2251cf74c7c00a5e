
:
xPlaceholder*
dtype0*
shape:	
:
yPlaceholder*
dtype0*
shape:
:
gPlaceholder*
dtype0*
shape:
.
rPlaceholder*
dtype0	*
shape:
/
ccPlaceholder*
dtype0	*
shape:
F
fFractionalMaxPoolGradxygrcc*
T0*
overlapping("Ê