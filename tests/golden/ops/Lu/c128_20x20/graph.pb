
6
inputPlaceholder*
dtype0*
shape
:
/
LuLuinput*
output_idx_type0*
T0

lu_1IdentityLu*
T0

pIdentityLu:1*
T0"Ê