
:
xPlaceholder*
dtype0*
shape:	
6
bPlaceholder*
dtype0*
shape:
%
dDrawBoundingBoxesxb*
T0"Ê