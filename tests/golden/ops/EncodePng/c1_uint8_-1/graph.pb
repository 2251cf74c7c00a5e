
R
ConstConst*
dtype0*5
value,B*" ¢
ïWÇó\J¾. Ø—·AqM€ø
:
e	EncodePngConst*
compressionÿÿÿÿÿÿÿÿÿ*
T0"Ê