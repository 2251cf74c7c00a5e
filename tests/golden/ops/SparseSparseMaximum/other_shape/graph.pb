
:
	a_indicesPlaceholder*
dtype0	*
shape
:
5
a_valuesPlaceholder*
dtype0*
shape:
4
a_shapePlaceholder*
dtype0	*
shape:
:
	b_indicesPlaceholder*
dtype0	*
shape
:
5
b_valuesPlaceholder*
dtype0*
shape:
4
b_shapePlaceholder*
dtype0	*
shape:
^
opSparseSparseMaximum	a_indicesa_valuesa_shape	b_indicesb_valuesb_shape*
T0"Ê