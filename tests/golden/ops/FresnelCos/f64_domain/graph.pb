
.
xPlaceholder*
dtype0*
shape:0

op
FresnelCosx*
T0"Ê