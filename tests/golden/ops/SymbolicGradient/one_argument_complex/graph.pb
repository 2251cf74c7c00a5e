
D
Square_complex64_x0Placeholder*
dtype0*
shape
:
?
Square_complex64/SquareSquareSquare_complex64_x0*
T0
w
Square_complex64/ConstConst*
dtype0*I
value@B>J0éVŽ¿%? Ð½?Rá=è(–¿ˆÐ¾+TÖ?ã¿ÿÞ=½©V¿÷Ùä>±)ô>
š
!Square_complex64/SymbolicGradientSymbolicGradientSquare_complex64_x0Square_complex64/Const*
fR
Square
T0*
Tout
2*
Tin
2
K
Square_complex64_d0Identity!Square_complex64/SymbolicGradient*
T0
B
Tanh_complex64_x0Placeholder*
dtype0*
shape
:
7
Tanh_complex64/TanhTanhTanh_complex64_x0*
T0
u
Tanh_complex64/ConstConst*
dtype0*I
value@B>J0éVŽ¿%? Ð½?Rá=è(–¿ˆÐ¾+TÖ?ã¿ÿÞ=½©V¿÷Ùä>±)ô>
’
Tanh_complex64/SymbolicGradientSymbolicGradientTanh_complex64_x0Tanh_complex64/Const*
fR
Tanh
T0*
Tout
2*
Tin
2
G
Tanh_complex64_d0IdentityTanh_complex64/SymbolicGradient*
T0
A
Sin_complex64_x0Placeholder*
dtype0*
shape
:
3
Sin_complex64/SinSinSin_complex64_x0*
T0
t
Sin_complex64/ConstConst*
dtype0*I
value@B>J0éVŽ¿%? Ð½?Rá=è(–¿ˆÐ¾+TÖ?ã¿ÿÞ=½©V¿÷Ùä>±)ô>
Ž
Sin_complex64/SymbolicGradientSymbolicGradientSin_complex64_x0Sin_complex64/Const*
fR
Sin
T0*
Tout
2*
Tin
2
E
Sin_complex64_d0IdentitySin_complex64/SymbolicGradient*
T0
H
Reciprocal_complex64_x0Placeholder*
dtype0*
shape
:
O
Reciprocal_complex64/Reciprocal
ReciprocalReciprocal_complex64_x0*
T0
{
Reciprocal_complex64/ConstConst*
dtype0*I
value@B>J0éVŽ¿%? Ð½?Rá=è(–¿ˆÐ¾+TÖ?ã¿ÿÞ=½©V¿÷Ùä>±)ô>
ª
%Reciprocal_complex64/SymbolicGradientSymbolicGradientReciprocal_complex64_x0Reciprocal_complex64/Const*
fR

Reciprocal
T0*
Tout
2*
Tin
2
S
Reciprocal_complex64_d0Identity%Reciprocal_complex64/SymbolicGradient*
T0
4
Conj_x0Placeholder*
dtype0*
shape:
#
	Conj/ConjConjConj_x0*
T0
G

Conj/ConstConst*
dtype0*%
valueBJéVŽ¿è(¿ Ð½?+TV?
t
Conj/SymbolicGradientSymbolicGradientConj_x0
Conj/Const*
fR
Conj
T0*
Tout
2*
Tin
2
3
Conj_d0IdentityConj/SymbolicGradient*
T0"Ê