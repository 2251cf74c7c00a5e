
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
8
x1Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
+
IgammaGradAIgammaGradAx0x1*
T0
3
RandomGammaGradRandomGammaGradx0x1*
T0
$
y0IdentityIgammaGradA*
T0
(
y1IdentityRandomGammaGrad*
T0"Ê