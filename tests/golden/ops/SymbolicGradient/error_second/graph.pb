
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
SGF*
Tout
2*
Tin
2Æ
K
#
Sq
x"T
y"T"
Ttype0
mMulxx*
TJT"

ym:z:0
w

SGF
x
yO
sSymbolicGradientxx*
fR
Sq
T0*
Tout
2*
Tin
2"
y
s:output:0"Ê