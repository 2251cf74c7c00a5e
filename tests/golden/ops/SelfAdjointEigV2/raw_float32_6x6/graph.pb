
6
inputPlaceholder*
dtype0*
shape
:
7
opSelfAdjointEigV2input*
	compute_v(*
T0"Ê