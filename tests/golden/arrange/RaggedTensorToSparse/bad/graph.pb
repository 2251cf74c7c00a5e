
8
spPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
7
vPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
^
RaggedTensorToSparseRaggedTensorToSparsespv*
T0*
Tsplits0	*
RAGGED_RANK"Ê