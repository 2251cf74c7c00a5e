
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
RaggedGatherRaggedGatherspvi*
Tvalues0*
PARAMS_RAGGED_RANK*
Tsplits0	*
OUTPUT_RAGGED_RANK*
Tindices0"Ê