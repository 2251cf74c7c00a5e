
<
set_indicesPlaceholder*
dtype0	*
shape
:
7

set_valuesPlaceholder*
dtype0*
shape:
6
	set_shapePlaceholder*
dtype0	*
shape:
R
opSetSizeset_indices
set_values	set_shape*
validate_indices(*
T0"Ê