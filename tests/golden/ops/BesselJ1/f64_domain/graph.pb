
.
xPlaceholder*
dtype0*
shape:2

opBesselJ1x*
T0"Ê