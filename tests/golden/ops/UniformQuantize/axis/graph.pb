
6
xPlaceholder*
dtype0*
shape:
.
sPlaceholder*
dtype0*
shape:
.
zPlaceholder*
dtype0*
shape:
Ž
rUniformQuantizexsz*	
Tin0*
quantization_max_val*
quantization_axis*

Tout0*#
quantization_min_val€ÿÿÿÿÿÿÿÿ
*
BitcastBitcastr*
T0*

type0"Ê