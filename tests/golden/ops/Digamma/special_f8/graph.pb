
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

DigammaDigammax*
T0"Ê