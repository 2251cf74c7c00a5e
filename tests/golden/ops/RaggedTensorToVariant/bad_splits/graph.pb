
5
splits_0Placeholder*
dtype0	*
shape:
7
valuesPlaceholder*
dtype0*
shape
:

opRaggedTensorToVariantsplits_0values*
Tsplits0	*
Tvalues0*
RAGGED_RANK*
batched_input(:÷NÒ
}
backRaggedTensorFromVariantop*
output_ragged_rank*
Tsplits0	*
Tvalues0* 
input_ragged_rankÿÿÿÿÿÿÿÿÿ"Ê