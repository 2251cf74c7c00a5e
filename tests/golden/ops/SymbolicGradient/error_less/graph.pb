
8
Less_x0Placeholder*
dtype0*
shape
:
8
Less_x1Placeholder*
dtype0*
shape
:
,
	Less/LessLessLess_x0Less_x1*
T0
A

Less/ConstConst*
dtype0
*
valueB
Z

Less/SymbolicGradientSymbolicGradientLess_x0Less_x1
Less/Const*
fR
Less
T0*
Tout
2*
Tin
2

3
Less_d0IdentityLess/SymbolicGradient*
T0
5
Less_d1IdentityLess/SymbolicGradient:1*
T0"Ê