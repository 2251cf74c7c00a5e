
;
matrixPlaceholder*
dtype0*
shape:
8
rhsPlaceholder*
dtype0*
shape:
M
opBandedTriangularSolvematrixrhs*
lower(*
T0*
adjoint("Ê