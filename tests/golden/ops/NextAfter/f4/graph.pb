
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
yPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
%
	NextAfter	NextAfterxy*
T0"Ê