
.
xPlaceholder*
dtype0*
shape:0

op
FresnelSinx*
T0"Ê