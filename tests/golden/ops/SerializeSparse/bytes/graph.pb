
?
sparse_indicesPlaceholder*
dtype0	*
shape
:
:
sparse_valuesPlaceholder*
dtype0*
shape:
9
sparse_shapePlaceholder*
dtype0	*
shape:
[
opSerializeSparsesparse_indicessparse_valuessparse_shape*
out_type0*
T0"Ê