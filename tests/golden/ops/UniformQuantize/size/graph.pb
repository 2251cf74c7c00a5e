
6
xPlaceholder*
dtype0*
shape:
.
sPlaceholder*
dtype0*
shape:
.
zPlaceholder*
dtype0*
shape:
Ž
rUniformQuantizexsz*#
quantization_min_val€ÿÿÿÿÿÿÿÿ*
quantization_max_val*
quantization_axis*

Tout0*	
Tin0
*
BitcastBitcastr*
T0*

type0"Ê