
M

sp_indicesPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
?
	sp_valuesPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
>
sp_shapePlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
H
densePlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
J
opSparseDenseCwiseMul
sp_indices	sp_valuessp_shapedense*
T0"Ê