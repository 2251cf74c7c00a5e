
-
x0Placeholder*
dtype0*
shape:
-
x1Placeholder*
dtype0*
shape:
+
SigmoidGradSigmoidGradx0x1*
T0
$
y0IdentitySigmoidGrad*
T0"Ê