
U
inputPlaceholder*
dtype0*2
shape):'ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
$
CholeskyCholeskyinput*
T0
 
lIdentityCholesky*
T0"Ê