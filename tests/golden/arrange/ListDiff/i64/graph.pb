
7
xPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
7
yPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
2
ListDiffListDiffxy*
T0	*
out_idx0	"Ê