
>
	superdiagPlaceholder*
dtype0*
shape:
=
maindiagPlaceholder*
dtype0*
shape:
<
subdiagPlaceholder*
dtype0*
shape:
8
rhsPlaceholder*
dtype0*
shape:
C
opTridiagonalMatMul	superdiagmaindiagsubdiagrhs*
T0"Ê