
U
xPlaceholder*
dtype0*6
shape-:+ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
Q
DepthToSpaceDepthToSpacex*
T0*
data_formatNHWC*

block_size"Ê