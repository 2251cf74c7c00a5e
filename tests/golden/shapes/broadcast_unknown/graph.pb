
,
xPlaceholder*
dtype0*
shape:
,
yPlaceholder*
dtype0*
shape:

addAddV2xy*
T0

zIdentityadd*
T0"Ê