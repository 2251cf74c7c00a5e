
D
xPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
;
UniqueV2/axisConst*
dtype0*
valueB:
K
UniqueV2UniqueV2xUniqueV2/axis*
T0*
out_idx0*
Taxis0"Ê