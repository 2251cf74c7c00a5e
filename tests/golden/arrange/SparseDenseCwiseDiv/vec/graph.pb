
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
7
bPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
C
SparseDenseCwiseDivSparseDenseCwiseDivaiavas_b*
T0"Ê