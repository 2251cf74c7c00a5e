
Q
xPlaceholder*
dtype0*2
shape):'ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
kPlaceholder*
dtype0*
shape:
D
pPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
W
SpaceToBatchNDSpaceToBatchNDxkp*
T0*
	Tpaddings0*
Tblock_shape0
&
yIdentitySpaceToBatchND*
T0
3
mulMulSpaceToBatchNDSpaceToBatchND*
T0
P
gradients/grad_ys_0Identitymul*!
_class
loc:@SpaceToBatchND*
T0
§
,gradients/SpaceToBatchND_grad/BatchToSpaceNDBatchToSpaceNDgradients/grad_ys_0kp*!
_class
loc:@SpaceToBatchND*
T0*
Tcrops0*
Tblock_shape0
E
dxIdentity,gradients/SpaceToBatchND_grad/BatchToSpaceND*
T0"Ê