
;
dPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
sPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7

SegmentMax
SegmentMaxds*
T0*
Tindices0"Ê