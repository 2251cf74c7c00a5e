
;

sp_indicesPlaceholder*
dtype0	*
shape
:
6
	sp_valuesPlaceholder*
dtype0*
shape:
5
sp_shapePlaceholder*
dtype0	*
shape:
2
densePlaceholder*
dtype0*
shape:
J
opSparseDenseCwiseDiv
sp_indices	sp_valuessp_shapedense*
T0"Ê