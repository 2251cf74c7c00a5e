
;
dPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
sPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
9
SegmentProdSegmentProdds*
T0*
Tindices0"Ê