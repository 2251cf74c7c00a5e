
.
yPlaceholder*
dtype0*
shape:
/
dyPlaceholder*
dtype0*
shape:
*
SigmoidGradSigmoidGradydy*
T0
#
aIdentitySigmoidGrad*
T0
$
TanhGradTanhGradydy*
T0
 
bIdentityTanhGrad*
T0

SigmoidSigmoidy*
T0
p
gradients/grad_ys_0Identitydy*
_class
loc:@Sigmoid*
T0*&
 _has_manual_control_dependencies(
g
gradients/Sigmoid_grad/ConjConjSigmoid^gradients/grad_ys_0*
_class
loc:@Sigmoid*
T0
ˆ
"gradients/Sigmoid_grad/SigmoidGradSigmoidGradgradients/Sigmoid_grad/Conjgradients/grad_ys_0*
_class
loc:@Sigmoid*
T0
:
cIdentity"gradients/Sigmoid_grad/SigmoidGrad*
T0

TanhTanhy*
T0
o
gradients_1/grad_ys_0Identitydy*
_class
	loc:@Tanh*
T0*&
 _has_manual_control_dependencies(
b
gradients_1/Tanh_grad/ConjConjTanh^gradients_1/grad_ys_0*
_class
	loc:@Tanh*
T0

gradients_1/Tanh_grad/TanhGradTanhGradgradients_1/Tanh_grad/Conjgradients_1/grad_ys_0*
_class
	loc:@Tanh*
T0
6
dIdentitygradients_1/Tanh_grad/TanhGrad*
T0"Ê