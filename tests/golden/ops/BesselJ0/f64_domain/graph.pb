
.
xPlaceholder*
dtype0*
shape:2

opBesselJ0x*
T0"Ê