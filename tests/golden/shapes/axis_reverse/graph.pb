
6
xPlaceholder*
dtype0*
shape:
.
aPlaceholder*
dtype0*
shape:
1
	ReverseV2	ReverseV2xa*
T0*

Tidx0
!
zIdentity	ReverseV2*
T0"Ê