
:
inputPlaceholder*
dtype0*
shape:
<
opBatchSelfAdjointEigV2input*
	compute_v(*
T0"
