
:
xPlaceholder*
dtype0*
shape:
.
zPlaceholder*
dtype0*
shape:
2
pPlaceholder*
dtype0*
shape
:
:
wPlaceholder*
dtype0*
shape:
‰
cFusedResizeAndPadConv2Dxzpw*
strides
*
T0*
mode	REFLECT*
paddingVALID*
resize_align_corners("Ê