
2
xPlaceholder*
dtype0*
shape
:
2
pPlaceholder*
dtype0*
shape
:
*
PadPadxp*
T0*
	Tpaddings0"Ê