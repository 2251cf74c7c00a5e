
.
xPlaceholder*
dtype0*
shape:
.
yPlaceholder*
dtype0*
shape:
!
cNestxy*
T0*
Nõ
Œ
2
Nest	
l"T*N
s"T"
Nint(0"	
Ttype 
pSumNl*
TJT*
NJN(
qSumNl:0p:s:0*
TJT*
N"

sq:s:0
d
2
SumN	
l"T*N
s"T"
Nint(0"	
Ttype 
aAddNl*
TJT*
NJN"
sa:sum:0"Ê