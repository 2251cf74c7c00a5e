
;
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
2
pPlaceholder*
dtype0*
shape
:
I
	MirrorPad	MirrorPadxp*
T0*
mode	REFLECT*
	Tpaddings0"Ê