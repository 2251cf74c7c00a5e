
8
indicesPlaceholder*
dtype0	*
shape
:
3
valuesPlaceholder*
dtype0*
shape:
2
shapePlaceholder*
dtype0	*
shape:
1
permPlaceholder*
dtype0*
shape:
_
SparseTensorToCSRSparseMatrixSparseTensorToCSRSparseMatrixindicesvaluesshape*
T0
Q
opSparseMatrixSparseCholeskySparseTensorToCSRSparseMatrixperm*

type0
.
backCSRSparseMatrixToDenseop*

type0
&
SparseMatrixNNZSparseMatrixNNZop"Ê