
:
xPlaceholder*
dtype0*
shape:	
6
bPlaceholder*
dtype0*
shape:
2
cPlaceholder*
dtype0*
shape
:
*
dDrawBoundingBoxesV2xbc*
T0"Ê