
;
inputsPlaceholder*
dtype0*
shape:
<
sequence_lengthPlaceholder*
dtype0*
shape:
u
opCTCBeamSearchDecoderinputssequence_length*
	top_paths*
T0*

beam_width*
merge_repeated("Ê