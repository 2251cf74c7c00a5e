
6
gPlaceholder*
dtype0*
shape:
6
xPlaceholder*
dtype0*
shape:
.
aPlaceholder*
dtype0*
shape:
.
bPlaceholder*
dtype0*
shape:
A
qQuantizeAndDequantizeV4Gradgxab*
T0*

axis"Ê