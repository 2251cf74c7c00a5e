
.
xPlaceholder*
dtype0*
shape:/

opBesselI0x*
T0"Ê