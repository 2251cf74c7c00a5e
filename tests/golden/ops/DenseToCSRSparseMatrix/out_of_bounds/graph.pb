
6
densePlaceholder*
dtype0*
shape
:
8
indicesPlaceholder*
dtype0	*
shape
:
5
opDenseToCSRSparseMatrixdenseindices*
T0
.
backCSRSparseMatrixToDenseop*

type0"Ê