
,
xPlaceholder*
dtype0	*
shape:

yToBoolx*
T0	"Ê