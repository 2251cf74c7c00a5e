
J
indicesPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
<
valuesPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
shapePlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
;
startPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
:
sizePlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
?
opSparseSliceindicesvaluesshapestartsize*
T0"Ê