
2
xPlaceholder*
dtype0*
shape
:
.
aPlaceholder*
dtype0*
shape:
1
	ReverseV2	ReverseV2xa*

Tidx0*
T0"Ê