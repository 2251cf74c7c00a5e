
7
aPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
bPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
$
BetaincBetaincabx*
T0"Ê