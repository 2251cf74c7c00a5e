
8
spPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
7
vPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
iPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
ˆ
RaggedGatherRaggedGatherspvi*
PARAMS_RAGGED_RANK*
OUTPUT_RAGGED_RANK*
Tsplits0	*
Tvalues0*
Tindices0"Ê