
2
aPlaceholder*
dtype0*
shape
:
2
xPlaceholder*
dtype0*
shape
:

opIgammaax*
T0"Ê