
7
sPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
lPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
dPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
RaggedRangeRaggedRangesld*
Tsplits0	*
T0"Ê