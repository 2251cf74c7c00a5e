
.
sPlaceholder*
dtype0*
shape:
.
lPlaceholder*
dtype0*
shape:
.
dPlaceholder*
dtype0*
shape:
;
RaggedRangeRaggedRangesld*
Tsplits0	*
T0"Ê