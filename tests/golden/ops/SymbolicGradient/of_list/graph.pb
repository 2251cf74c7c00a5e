
.
xPlaceholder*
dtype0*
shape:
.
yPlaceholder*
dtype0*
shape:
.
gPlaceholder*
dtype0*
shape:

dummyNoOp
_
sSymbolicGradientxyg*
fR
MulP
T0
N*
Tout
2*
Tin
2

s1Identitys:1*
T0`
^
2
MulP	
l"T*N
s"T"
Nint(0"	
Ttype
aMull:0l:1*
TJT"

sa:z:0"Ê