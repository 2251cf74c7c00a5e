
6
xPlaceholder*
dtype0*
shape:
.
pPlaceholder*
dtype0*
shape:
2
	Transpose	Transposexp*
T0*
Tperm0"Ê