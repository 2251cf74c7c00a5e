
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

ErfinvErfinvx*
T0"Ê