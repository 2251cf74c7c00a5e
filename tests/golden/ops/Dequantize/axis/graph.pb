
6
xPlaceholder*
dtype0*
shape:
.
aPlaceholder*
dtype0*
shape:
.
bPlaceholder*
dtype0*
shape:
*
BitcastBitcastx*
T0*

type0
f
q
DequantizeBitcastab*
dtype0*
narrow_range(*
T0*
modeSCALED*

axis"Ê