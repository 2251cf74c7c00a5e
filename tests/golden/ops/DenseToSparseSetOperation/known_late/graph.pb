
G
set1Placeholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
O
set2_indicesPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
A
set2_valuesPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
@

set2_shapePlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
…
opDenseToSparseSetOperationset1set2_indicesset2_values
set2_shape*
set_operationa-b*
validate_indices(*
T0	"Ê