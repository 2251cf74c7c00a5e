
.
xPlaceholder*
dtype0*
shape:/

opBesselI1x*
T0"Ê