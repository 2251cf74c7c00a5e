
.
aPlaceholder*
dtype0*
shape:

.
xPlaceholder*
dtype0*
shape:


op	Polygammaax*
T0"Ê