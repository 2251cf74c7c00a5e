
.
xPlaceholder*
dtype0*
shape:
.
gPlaceholder*
dtype0*
shape:

cSq1x
G
sSymbolicGradientxg*
fR
Sq1*
Tout
2*
Tin
2˜
J
 
Sq1Grad
x
dy
dx
mMuldydy*
T0"
dxm:z:0
:

Sq1
x
y
mMulxx*
T0"

ym:z:0
Sq1Sq1Grad"Ê