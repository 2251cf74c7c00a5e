
:
inputPlaceholder*
dtype0*
shape:!!
6
MatrixDeterminantMatrixDeterminantinput*
T0
+
detIdentityMatrixDeterminant*
T0"Ê