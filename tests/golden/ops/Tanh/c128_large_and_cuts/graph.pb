
/
xPlaceholder*
dtype0*
shape:©

TanhTanhx*
T0
!
Tanh_1IdentityTanh*
T0

TanTanx*
T0

Tan_1IdentityTan*
T0

SigmoidSigmoidx*
T0
'
	Sigmoid_1IdentitySigmoid*
T0

AsinAsinx*
T0
!
Asin_1IdentityAsin*
T0

AcosAcosx*
T0
!
Acos_1IdentityAcos*
T0

AsinhAsinhx*
T0
#
Asinh_1IdentityAsinh*
T0

AcoshAcoshx*
T0
#
Acosh_1IdentityAcosh*
T0

AtanhAtanhx*
T0
#
Atanh_1IdentityAtanh*
T0

ExpExpx*
T0

Exp_1IdentityExp*
T0

SqrtSqrtx*
T0
!
Sqrt_1IdentitySqrt*
T0"Ê