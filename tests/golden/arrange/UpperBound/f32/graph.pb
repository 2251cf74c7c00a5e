
;
sPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
D
vPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
7

UpperBound
UpperBoundsv*
out_type0*
T0"Ê