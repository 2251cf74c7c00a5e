
6
qPlaceholder*
dtype0*
shape:
.
lPlaceholder*
dtype0*
shape:
.
hPlaceholder*
dtype0*
shape:
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
T0*

type0
,
	Bitcast_1Bitcastl*
T0*

type0
,
	Bitcast_2Bitcasth*
T0*

type0
¬
rUniformQuantizedClipByValueBitcast	Bitcast_1	Bitcast_2sz*
T0*
quantization_max_valÿÿÿÿ*
quantization_axis*#
quantization_min_val€€€€øÿÿÿÿ
,
	Bitcast_3Bitcastr*
T0*

type0"Ê