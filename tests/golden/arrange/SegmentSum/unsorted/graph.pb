
2
dPlaceholder*
dtype0*
shape
:
.
sPlaceholder*
dtype0*
shape:
7

SegmentSum
SegmentSumds*
T0*
Tindices0"Ê