
-
x0Placeholder*
dtype0*
shape:
-
x1Placeholder*
dtype0*
shape:
'
	RsqrtGrad	RsqrtGradx0x1*
T0
"
y0Identity	RsqrtGrad*
T0"Ê