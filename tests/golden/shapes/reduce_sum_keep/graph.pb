
?
xPlaceholder*
dtype0* 
shape:ÿÿÿÿÿÿÿÿÿ
7
aPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
6
SumSumxa*
	keep_dims(*

Tidx0*
T0

zIdentitySum*
T0"Ê