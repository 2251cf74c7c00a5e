
.
aPlaceholder*
dtype0*
shape:
.
bPlaceholder*
dtype0*
shape:
9
PackPackab*
T0*
axisÿÿÿÿÿÿÿÿÿ*
N"Ê