
7

Complex_x0Placeholder*
dtype0*
shape:
7

Complex_x1Placeholder*
dtype0*
shape:
G
Complex/ComplexComplex
Complex_x0
Complex_x1*
T0*

Tout0
J
Complex/ConstConst*
dtype0*%
valueBJéVŽ¿è(¿ Ð½?+TV?
š
Complex/SymbolicGradientSymbolicGradient
Complex_x0
Complex_x1Complex/Const*%
f R
Complex
T0

Tout0*
Tout
2*
Tin
2
9

Complex_d0IdentityComplex/SymbolicGradient*
T0
;

Complex_d1IdentityComplex/SymbolicGradient:1*
T0"Ê