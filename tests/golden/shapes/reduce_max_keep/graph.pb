
?
xPlaceholder*
dtype0* 
shape:ÿÿÿÿÿÿÿÿÿ
7
aPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
6
MaxMaxxa*
	keep_dims(*

Tidx0*
T0

zIdentityMax*
T0"Ê