
.
xPlaceholder*
dtype0*
shape:1

opBesselY1x*
T0"Ê