
D
xPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
2
pPlaceholder*
dtype0*
shape
:
Q
MirrorPadGradMirrorPadGradxp*
T0*
mode	REFLECT*
	Tpaddings0"Ê