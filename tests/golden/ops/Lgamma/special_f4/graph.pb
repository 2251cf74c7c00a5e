
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

LgammaLgammax*
T0"Ê