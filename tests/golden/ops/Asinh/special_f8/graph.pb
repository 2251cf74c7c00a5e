
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

AsinhAsinhx*
T0"Ê