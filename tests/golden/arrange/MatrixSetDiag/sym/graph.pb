
Q
xPlaceholder*
dtype0*2
shape):'ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
2
dPlaceholder*
dtype0*
shape
:
-
MatrixSetDiagMatrixSetDiagxd*
T0"Ê