
:
xPlaceholder*
dtype0*
shape:
:
yPlaceholder*
dtype0*
shape:
:
gPlaceholder*
dtype0*
shape:
.
kPlaceholder*
dtype0*
shape:
.
sPlaceholder*
dtype0*
shape:
U
pMaxPoolGradV2xygks*
T0*
data_formatNHWC*
paddingVALID"Ê