
.
xPlaceholder*
dtype0*
shape:

cSqx*
T0M
K
#
Sq
x"T
y"T"
Ttype0
mMulxx*
TJT"

ym:z:0"Ê