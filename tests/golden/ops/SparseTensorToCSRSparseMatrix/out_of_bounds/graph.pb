
8
indicesPlaceholder*
dtype0	*
shape
:
3
valuesPlaceholder*
dtype0*
shape:
2
shapePlaceholder*
dtype0	*
shape:
_
SparseTensorToCSRSparseMatrixSparseTensorToCSRSparseMatrixindicesvaluesshape*
T0
G
opCSRSparseMatrixToDenseSparseTensorToCSRSparseMatrix*

type0
5
nnzSparseMatrixNNZSparseTensorToCSRSparseMatrix"Ê