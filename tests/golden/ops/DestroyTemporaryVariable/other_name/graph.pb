
U
TemporaryVariableTemporaryVariable*
var_namet*
shape:*
dtype0
‹
DestroyTemporaryVariableDestroyTemporaryVariableTemporaryVariable*
var_nameother*
T0*$
_class
loc:@TemporaryVariable
0
yIdentityDestroyTemporaryVariable*
T0"Ê