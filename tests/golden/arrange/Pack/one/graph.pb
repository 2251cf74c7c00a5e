
.
aPlaceholder*
dtype0*
shape:
6
PackPacka*
T0*
axisÿÿÿÿÿÿÿÿÿ*
N"Ê