
.
xPlaceholder*
dtype0*
shape:
.
yPlaceholder*
dtype0*
shape:
$
cSumNxyx*
T0*
Nf
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