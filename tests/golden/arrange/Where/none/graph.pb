
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

WhereWherex*
T0"Ê