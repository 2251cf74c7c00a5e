
<
Max_keep_x0Placeholder*
dtype0*
shape
:
<
Max_keep/ConstConst*
dtype0*
valueB:
V
Max_keep/MaxMaxMax_keep_x0Max_keep/Const*
	keep_dims(*

Tidx0*
T0
I
Max_keep/Const_1Const*
dtype0*!
valueB"éVŽ¿ Ð½?
°
Max_keep/SymbolicGradientSymbolicGradientMax_keep_x0Max_keep/ConstMax_keep/Const_1*2
f-R+
Max
	keep_dims(

Tidx0
T0*
Tout
2*
Tin
2
;
Max_keep_d0IdentityMax_keep/SymbolicGradient*
T0
=
Max_keep_d1IdentityMax_keep/SymbolicGradient:1*
T0"Ê