
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
b
RaggedTensorToSparseRaggedTensorToSparsesasbv*
T0*
Tsplits0	*
RAGGED_RANK"Ê