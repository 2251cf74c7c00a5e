
.
xPlaceholder*
dtype0*
shape:1

opBesselK0x*
T0"Ê