
2
xPlaceholder*
dtype0*
shape
:
.
aPlaceholder*
dtype0
*
shape:
!
ReverseReversexa*
T0"Ê