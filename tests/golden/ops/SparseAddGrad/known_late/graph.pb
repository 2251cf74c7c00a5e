
G
backprop_val_gradPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
L
	a_indicesPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
L
	b_indicesPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
N
sum_indicesPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
R
opSparseAddGradbackprop_val_grad	a_indices	b_indicessum_indices*
T0"Ê