
;

Mul_c64_x0Placeholder*
dtype0*
shape
:
7

Mul_c64_x1Placeholder*
dtype0*
shape:
3
Mul_c64/MulMul
Mul_c64_x0
Mul_c64_x1*
T0
n
Mul_c64/ConstConst*
dtype0*I
value@B>J0éVŽ¿%? Ð½?Rá=è(–¿ˆÐ¾+TÖ?ã¿ÿÞ=½©V¿÷Ùä>±)ô>
Š
Mul_c64/SymbolicGradientSymbolicGradient
Mul_c64_x0
Mul_c64_x1Mul_c64/Const*
fR
Mul
T0*
Tout
2*
Tin
2
9

Mul_c64_d0IdentityMul_c64/SymbolicGradient*
T0
;

Mul_c64_d1IdentityMul_c64/SymbolicGradient:1*
T0
;

Add_c64_x0Placeholder*
dtype0*
shape
:
7

Add_c64_x1Placeholder*
dtype0*
shape:
3
Add_c64/AddAdd
Add_c64_x0
Add_c64_x1*
T0
n
Add_c64/ConstConst*
dtype0*I
value@B>J0éVŽ¿%? Ð½?Rá=è(–¿ˆÐ¾+TÖ?ã¿ÿÞ=½©V¿÷Ùä>±)ô>
Š
Add_c64/SymbolicGradientSymbolicGradient
Add_c64_x0
Add_c64_x1Add_c64/Const*
fR
Add
T0*
Tout
2*
Tin
2
9

Add_c64_d0IdentityAdd_c64/SymbolicGradient*
T0
;

Add_c64_d1IdentityAdd_c64/SymbolicGradient:1*
T0
?
RealDiv_c64_x0Placeholder*
dtype0*
shape
:
;
RealDiv_c64_x1Placeholder*
dtype0*
shape:
G
RealDiv_c64/RealDivRealDivRealDiv_c64_x0RealDiv_c64_x1*
T0
r
RealDiv_c64/ConstConst*
dtype0*I
value@B>J0éVŽ¿%? Ð½?Rá=è(–¿ˆÐ¾+TÖ?ã¿ÿÞ=½©V¿÷Ùä>±)ô>
ž
RealDiv_c64/SymbolicGradientSymbolicGradientRealDiv_c64_x0RealDiv_c64_x1RealDiv_c64/Const*
fR
RealDiv
T0*
Tout
2*
Tin
2
A
RealDiv_c64_d0IdentityRealDiv_c64/SymbolicGradient*
T0
C
RealDiv_c64_d1IdentityRealDiv_c64/SymbolicGradient:1*
T0
;

Sub_c64_x0Placeholder*
dtype0*
shape
:
7

Sub_c64_x1Placeholder*
dtype0*
shape:
3
Sub_c64/SubSub
Sub_c64_x0
Sub_c64_x1*
T0
n
Sub_c64/ConstConst*
dtype0*I
value@B>J0éVŽ¿%? Ð½?Rá=è(–¿ˆÐ¾+TÖ?ã¿ÿÞ=½©V¿÷Ùä>±)ô>
Š
Sub_c64/SymbolicGradientSymbolicGradient
Sub_c64_x0
Sub_c64_x1Sub_c64/Const*
fR
Sub
T0*
Tout
2*
Tin
2
9

Sub_c64_d0IdentitySub_c64/SymbolicGradient*
T0
;

Sub_c64_d1IdentitySub_c64/SymbolicGradient:1*
T0
<
MulNoNan_c64_x0Placeholder*
dtype0*
shape:
<
MulNoNan_c64_x1Placeholder*
dtype0*
shape:
L
MulNoNan_c64/MulNoNanMulNoNanMulNoNan_c64_x0MulNoNan_c64_x1*
T0
O
MulNoNan_c64/ConstConst*
dtype0*%
valueBJéVŽ¿è(¿ Ð½?+TV?
£
MulNoNan_c64/SymbolicGradientSymbolicGradientMulNoNan_c64_x0MulNoNan_c64_x1MulNoNan_c64/Const*
fR
MulNoNan
T0*
Tout
2*
Tin
2
C
MulNoNan_c64_d0IdentityMulNoNan_c64/SymbolicGradient*
T0
E
MulNoNan_c64_d1IdentityMulNoNan_c64/SymbolicGradient:1*
T0
7

Pow_c64_x0Placeholder*
dtype0*
shape:
7

Pow_c64_x1Placeholder*
dtype0*
shape:
3
Pow_c64/PowPow
Pow_c64_x0
Pow_c64_x1*
T0
J
Pow_c64/ConstConst*
dtype0*%
valueBJéVŽ¿è(¿ Ð½?+TV?
Š
Pow_c64/SymbolicGradientSymbolicGradient
Pow_c64_x0
Pow_c64_x1Pow_c64/Const*
fR
Pow
T0*
Tout
2*
Tin
2
9

Pow_c64_d0IdentityPow_c64/SymbolicGradient*
T0
;

Pow_c64_d1IdentityPow_c64/SymbolicGradient:1*
T0"Ê