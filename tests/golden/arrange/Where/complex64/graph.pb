
H
xPlaceholder*
dtype0*)
shape :ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ

WhereWherex*
T0"Ê