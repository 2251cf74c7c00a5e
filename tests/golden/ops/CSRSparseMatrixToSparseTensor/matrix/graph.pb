
8
indicesPlaceholder*
dtype0	*
shape
:
3
valuesPlaceholder*
dtype0*
shape:
2
shapePlaceholder*
dtype0	*
shape:
_
SparseTensorToCSRSparseMatrixSparseTensorToCSRSparseMatrixindicesvaluesshape*
T0
V
tSparseMatrixTransposeSparseTensorToCSRSparseMatrix*
	conjugate(*

type0
2
opCSRSparseMatrixToSparseTensort*

type0"Ê