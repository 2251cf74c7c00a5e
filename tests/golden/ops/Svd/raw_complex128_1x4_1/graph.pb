
6
inputPlaceholder*
dtype0*
shape
:
@
opSvdinput*

compute_uv(*
T0*
full_matrices("Ê