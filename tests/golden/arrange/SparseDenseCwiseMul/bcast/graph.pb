
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
2
bPlaceholder*
dtype0*
shape
:
C
SparseDenseCwiseMulSparseDenseCwiseMulaiavas_b*
T0"Ê