
:
xPlaceholder*
dtype0*
shape:
2
pPlaceholder*
dtype0*
shape
:
:
wPlaceholder*
dtype0*
shape:
c
cFusedPadConv2Dxpw*
strides
*
T0*
mode	SYMMETRIC*
paddingVALID"Ê