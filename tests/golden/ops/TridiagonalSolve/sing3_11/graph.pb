
:
	diagonalsPlaceholder*
dtype0*
shape
:
4
rhsPlaceholder*
dtype0*
shape
:
_
opTridiagonalSolve	diagonalsrhs*
perturb_singular(*
T0*
partial_pivoting("Ê