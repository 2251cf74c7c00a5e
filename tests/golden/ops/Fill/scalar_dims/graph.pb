
,
dPlaceholder*
dtype0*
shape:
,
xPlaceholder*
dtype0*
shape:
*
yFilldx*

index_type0*
T0"Ê