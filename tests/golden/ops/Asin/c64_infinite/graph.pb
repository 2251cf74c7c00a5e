
.
xPlaceholder*
dtype0*
shape:

AsinAsinx*
T0
!
Asin_1IdentityAsin*
T0

AsinhAsinhx*
T0
#
Asinh_1IdentityAsinh*
T0

AtanhAtanhx*
T0
#
Atanh_1IdentityAtanh*
T0"Ê