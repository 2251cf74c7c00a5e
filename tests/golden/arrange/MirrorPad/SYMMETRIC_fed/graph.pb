
;
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
2
pPlaceholder*
dtype0*
shape
:
K
	MirrorPad	MirrorPadxp*
T0*
mode	SYMMETRIC*
	Tpaddings0"Ê