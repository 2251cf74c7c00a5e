
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

AtanhAtanhx*
T0"Ê