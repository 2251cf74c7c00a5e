
.
aPlaceholder*
dtype0*
shape:(
.
xPlaceholder*
dtype0*
shape:(
 
opIgammaGradAax*
T0"Ê