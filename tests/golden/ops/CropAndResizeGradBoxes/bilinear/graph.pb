
:
gPlaceholder*
dtype0*
shape:
:
xPlaceholder*
dtype0*
shape:
2
bPlaceholder*
dtype0*
shape
:
.
iPlaceholder*
dtype0*
shape:
F
cCropAndResizeGradBoxesgxbi*
T0*
method
bilinear"Ê