
6
pPlaceholder*
dtype0*
shape:
2
iPlaceholder*
dtype0*
shape
:
Y
GatherNdGatherNdpi*
Tindices0*
bad_indices_policyIGNORE*
Tparams0"Ê