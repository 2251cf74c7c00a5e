
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
8
x1Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

TanhTanhx0*
T0

SigmoidSigmoidx0*
T0

ExpExpx1*
T0

y0IdentityTanh*
T0
 
y1IdentitySigmoid*
T0

y2IdentityExp*
T0"Ê