
.
xPlaceholder*
dtype0*
shape:
.
gPlaceholder*
dtype0*
shape:
O
sSymbolicGradientxg*
fR
Sq
T0*
Tout
2*
Tin
2M
K
#
Sq
x"T
y"T"
Ttype0
mMulxx*
TJT"

ym:z:0"Ê