
.
sPlaceholder*
dtype0	*
shape:
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
C
fFractionalAvgPoolGradsgrcc*
T0*
overlapping("Ê