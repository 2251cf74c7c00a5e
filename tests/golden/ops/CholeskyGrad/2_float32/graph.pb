
2
lPlaceholder*
dtype0*
shape
:
5
gradPlaceholder*
dtype0*
shape
:
$
opCholeskyGradlgrad*
T0"Ê