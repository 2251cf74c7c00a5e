
8
spPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
7
vPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
^
RaggedTensorToSparseRaggedTensorToSparsespv*
Tsplits0	*
T0*
RAGGED_RANK"Ê