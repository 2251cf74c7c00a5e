
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
yPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
'

BitwiseXor
BitwiseXorxy*
T0"Ê