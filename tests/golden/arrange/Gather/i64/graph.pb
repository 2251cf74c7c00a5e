
.
pPlaceholder*
dtype0*
shape:
.
iPlaceholder*
dtype0	*
shape:
M
GatherGatherpi*
validate_indices(*
Tindices0	*
Tparams0"Ê