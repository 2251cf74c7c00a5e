
8
saPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
8
sbPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
;
vPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
iPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
Œ
RaggedGatherRaggedGathersasbvi*
Tvalues0*
OUTPUT_RAGGED_RANK*
PARAMS_RAGGED_RANK*
Tsplits0	*
Tindices0	"Ê