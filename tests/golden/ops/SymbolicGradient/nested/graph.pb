
.
xPlaceholder*
dtype0*
shape:
.
gPlaceholder*
dtype0*
shape:
I
tSymbolicGradientxg*
f	R
Twice*
Tout
2*
Tin
2½
n

Twice
x
y
pSqx*
T0
qSqp:y:0*
T0
aAddq:y:0x*
T0"

ya:z:0
K
#
Sq
x"T
y"T"
Ttype0
mMulxx*
TJT"

ym:z:0"Ê