
6
inputPlaceholder*
dtype0*
shape
:
&
opMatrixSquareRootinput*
T0"Ê