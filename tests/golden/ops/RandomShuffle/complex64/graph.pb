
6
valuePlaceholder*
dtype0*
shape
:
<
opRandomShufflevalue*
T0*

seed*
seed2"Ê