
.
xPlaceholder*
dtype0*
shape:
.
gPlaceholder*
dtype0*
shape:
Q
sSymbolicGradientxxgg*
fR
Dead*
Tout
2*
Tin
2|
z
"
Dead
x
z
y
w!
aAddNzz*
T0*
N
mMulxx*
T0"
wa:sum:0"

ym:z:0"Ê