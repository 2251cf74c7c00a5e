
2
alphaPlaceholder*
dtype0*
shape:(
3
samplePlaceholder*
dtype0*
shape:(
-
opRandomGammaGradalphasample*
T0"Ê