
5
set1Placeholder*
dtype0*
shape
:
5
set2Placeholder*
dtype0*
shape
:
c
opDenseToDenseSetOperationset1set2*
set_operationb-a*
validate_indices(*
T0"Ê