
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
E
x1Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
S
MirrorPadGradMirrorPadGradx0x1*
T0*
mode	REFLECT*
	Tpaddings0
&
y0IdentityMirrorPadGrad*
T0"Ê