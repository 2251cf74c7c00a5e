
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
l
opDenseToDenseSetOperationset1set2*
set_operationintersection*
validate_indices(*
T0"Ê