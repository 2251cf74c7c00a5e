
D
xPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
2
pPlaceholder*
dtype0*
shape
:
S
MirrorPadGradMirrorPadGradxp*
T0*
mode	SYMMETRIC*
	Tpaddings0"Ê