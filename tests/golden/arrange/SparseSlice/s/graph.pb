
<
aiPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
8
avPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
0
as_Placeholder*
dtype0	*
shape:
/
stPlaceholder*
dtype0	*
shape:
/
siPlaceholder*
dtype0	*
shape:
8
SparseSliceSparseSliceaiavas_stsi*
T0"Ê