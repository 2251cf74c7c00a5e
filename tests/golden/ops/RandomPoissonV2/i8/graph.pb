
7
aPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
C
RandomPoissonV2/shapeConst*
dtype0*
valueB:
t
RandomPoissonV2RandomPoissonV2RandomPoissonV2/shapea*
dtype0	*
R0*

seed*
S0*
seed2"Ê