
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

RsqrtRsqrtx0*
T0

Expm1Expm1x0*
T0

Log1pLog1px0*
T0

y0IdentityRsqrt*
T0

y1IdentityExpm1*
T0

y2IdentityLog1p*
T0"Ê