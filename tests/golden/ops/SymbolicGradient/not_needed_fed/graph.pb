
.
xPlaceholder*
dtype0*
shape:
.
gPlaceholder*
dtype0*
shape:
Q
sSymbolicGradientxxgg*
Tin
2*
Tout
2*
fR
Dead

oSquares*
T0|
z
"
Dead
x
z
y
w!
aAddNzz*
N*
T0
mMulxx*
T0"
wa:sum:0"

ym:z:0"Ê