
L
xPlaceholder*
dtype0*-
shape$:"ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
Q
SpaceToDepthSpaceToDepthx*
T0*
data_formatNHWC*

block_size"Ê