
=
set1_indicesPlaceholder*
dtype0	*
shape
:
8
set1_valuesPlaceholder*
dtype0	*
shape:
7

set1_shapePlaceholder*
dtype0	*
shape:
=
set2_indicesPlaceholder*
dtype0	*
shape
:
8
set2_valuesPlaceholder*
dtype0	*
shape:
7

set2_shapePlaceholder*
dtype0	*
shape:
°
opSparseToSparseSetOperationset1_indicesset1_values
set1_shapeset2_indicesset2_values
set2_shape*
set_operationintersection*
validate_indices(*
T0	"Ê