
,
xPlaceholder*
dtype0*
shape:
,
pPlaceholder*
dtype0*
shape:
(
zPadxp*
	Tpaddings0*
T0"Ê