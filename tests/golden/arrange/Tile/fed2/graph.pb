
2
xPlaceholder*
dtype0*
shape
:
.
mPlaceholder*
dtype0	*
shape:
-
TileTilexm*

Tmultiples0	*
T0"Ê