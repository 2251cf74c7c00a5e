
5
set1Placeholder*
dtype0*
shape
:
=
set2_indicesPlaceholder*
dtype0	*
shape
:
8
set2_valuesPlaceholder*
dtype0*
shape:
7

set2_shapePlaceholder*
dtype0	*
shape:
‡
opDenseToSparseSetOperationset1set2_indicesset2_values
set2_shape*
set_operationunion*
validate_indices(*
T0"Ê