
:
inputPlaceholder*
dtype0*
shape:!!
$
CholeskyCholeskyinput*
T0
 
lIdentityCholesky*
T0"Ê