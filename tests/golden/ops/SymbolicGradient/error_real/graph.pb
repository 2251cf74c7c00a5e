
4
Real_x0Placeholder*
dtype0*
shape:
/
	Real/RealRealReal_x0*
T0*

Tout0
?

Real/ConstConst*
dtype0*
valueB"éVŽ¿ Ð½?
€
Real/SymbolicGradientSymbolicGradientReal_x0
Real/Const*"
fR
Real
T0

Tout0*
Tout
2*
Tin
2
3
Real_d0IdentityReal/SymbolicGradient*
T0"Ê