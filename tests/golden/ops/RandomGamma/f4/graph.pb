
7
aPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
?
RandomGamma/shapeConst*
dtype0*
valueB:
[
RandomGammaRandomGammaRandomGamma/shapea*
T0*

seed*
S0*
seed2"Ê