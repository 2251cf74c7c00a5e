
6
inputPlaceholder*
dtype0*
shape
:
-
opQrinput*
T0*
full_matrices("Ê