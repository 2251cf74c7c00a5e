
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

TanTanx0*
T0

y0IdentityTan*
T0"Ê