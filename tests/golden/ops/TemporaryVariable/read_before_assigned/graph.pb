
Y
TemporaryVariableTemporaryVariable*
dtype0*
shape
:*
var_namet
7
ySubTemporaryVariableTemporaryVariable*
T0"Ê