
6
inputPlaceholder*
dtype0*
shape
:
%
opMatrixLogarithminput*
T0"Ê