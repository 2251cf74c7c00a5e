
U
TemporaryVariableTemporaryVariable*
var_namet*
shape:*
dtype0
‡
DestroyTemporaryVariableDestroyTemporaryVariableTemporaryVariable*
var_namet*
T0*$
_class
loc:@TemporaryVariable
‰
DestroyTemporaryVariable_1DestroyTemporaryVariableTemporaryVariable*
var_namet*
T0*$
_class
loc:@TemporaryVariable
I
yAddV2DestroyTemporaryVariableDestroyTemporaryVariable_1*
T0"Ê