
7
xPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
2
InvertPermutationInvertPermutationx*
T0	"Ê