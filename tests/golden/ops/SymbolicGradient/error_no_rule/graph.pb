
.
xPlaceholder*
dtype0*
shape:
.
gPlaceholder*
dtype0*
shape:
G
sSymbolicGradientxg*
fR
NoG*
Tout
2*
Tin
2H
F

NoG
x
y!
aAddNxx*
T0*
N"
ya:sum:0"Ê