
,
cPlaceholder*
dtype0
*
shape:
,
xPlaceholder*
dtype0*
shape:
,
yPlaceholder*
dtype0*
shape:

zSelectV2cxy*
T0"Ê