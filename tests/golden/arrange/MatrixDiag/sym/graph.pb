
D
dPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
$

MatrixDiag
MatrixDiagd*
T0	"Ê