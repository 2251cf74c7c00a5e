
6
qPlaceholder*
dtype0*
shape:
.
sPlaceholder*
dtype0*
shape:
.
zPlaceholder*
dtype0*
shape:
*
BitcastBitcastq*
T0*

type0
–
rUniformDequantizeBitcastsz*	
Tin0*
quantization_max_val*
quantization_axis*

Tout0*#
quantization_min_val€ÿÿÿÿÿÿÿÿ"Ê