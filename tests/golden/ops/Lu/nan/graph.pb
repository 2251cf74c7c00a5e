
6
inputPlaceholder*
dtype0*
shape
:
/
opLuinput*
output_idx_type0*
T0"Ê