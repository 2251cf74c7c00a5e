
.
xPlaceholder*
dtype0*
shape:
.
qPlaceholder*
dtype0*
shape:

opZetaxq*
T0"Ê