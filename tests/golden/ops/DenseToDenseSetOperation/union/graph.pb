
G
set1Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
G
set2Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
e
opDenseToDenseSetOperationset1set2*
set_operationunion*
validate_indices(*
T0"Ê