
8
indicesPlaceholder*
dtype0	*
shape
:
3
valuesPlaceholder*
dtype0*
shape:
2
shapePlaceholder*
dtype0	*
shape:
J
opSerializeManySparseindicesvaluesshape*
out_type0*
T0
=
backDeserializeSparseop*
dtype0*
Tserialized0"Ê