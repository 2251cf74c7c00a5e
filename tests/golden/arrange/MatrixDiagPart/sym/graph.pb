
Q
dPlaceholder*
dtype0*2
shape):'ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
,
MatrixDiagPartMatrixDiagPartd*
T0"Ê