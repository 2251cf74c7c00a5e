
6
inputPlaceholder*
dtype0*
shape
:

opCholeskyinput*
T0"Ê