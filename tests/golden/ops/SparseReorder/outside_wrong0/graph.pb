
D
iPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
7
vPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
sPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
0
SparseReorderSparseReorderivs*
T0
%
aIdentitySparseReorder*
T0	
'
bIdentitySparseReorder:1*
T0"Ê