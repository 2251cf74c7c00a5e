
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
T
BatchToSpaceNDBatchToSpaceNDxkp*
T0*
Tcrops0*
Tblock_shape0
&
yIdentityBatchToSpaceND*
T0
3
mulMulBatchToSpaceNDBatchToSpaceND*
T0
P
gradients/grad_ys_0Identitymul*!
_class
loc:@BatchToSpaceND*
T0
ª
,gradients/BatchToSpaceND_grad/SpaceToBatchNDSpaceToBatchNDgradients/grad_ys_0kp*!
_class
loc:@BatchToSpaceND*
T0*
	Tpaddings0*
Tblock_shape0
E
dxIdentity,gradients/BatchToSpaceND_grad/SpaceToBatchND*
T0"Ê