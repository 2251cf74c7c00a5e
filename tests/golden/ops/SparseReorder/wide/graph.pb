
3
aiPlaceholder*
dtype0	*
shape
:
/
avPlaceholder*
dtype0*
shape:
/
asPlaceholder*
dtype0	*
shape:
(
opSparseReorderaiavas*
T0"Ê