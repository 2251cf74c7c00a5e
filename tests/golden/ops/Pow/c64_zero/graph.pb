
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
8
x1Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

PowPowx0x1*
T0

y0IdentityPow*
T0"Ê