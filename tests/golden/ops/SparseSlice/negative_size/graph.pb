
8
indicesPlaceholder*
dtype0	*
shape
:
3
valuesPlaceholder*
dtype0*
shape:
2
shapePlaceholder*
dtype0	*
shape:
2
startPlaceholder*
dtype0	*
shape:
1
sizePlaceholder*
dtype0	*
shape:
?
opSparseSliceindicesvaluesshapestartsize*
T0"Ê