
:
	superdiagPlaceholder*
dtype0*
shape
:
9
maindiagPlaceholder*
dtype0*
shape
:
8
subdiagPlaceholder*
dtype0*
shape
:
4
rhsPlaceholder*
dtype0*
shape
:
C
opTridiagonalMatMul	superdiagmaindiagsubdiagrhs*
T0"Ê