
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
4
SparseSoftmaxSparseSoftmaxaiavas_*
T0"Ê