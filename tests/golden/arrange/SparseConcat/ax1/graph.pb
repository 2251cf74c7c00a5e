
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
<
biPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
8
bvPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
/
bsPlaceholder*
dtype0	*
shape:
Y
SparseConcatSparseConcataibiavbvas_bs*

concat_dim*
T0*
N"Ê