
6
inputPlaceholder*
dtype0*
shape
:
6
opEiginput*
	compute_v(*
T0*

Tout0"Ê