
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
;
bPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
U
SparseTensorDenseAddSparseTensorDenseAddaiavas_b*
T0*
Tindices0	"Ê