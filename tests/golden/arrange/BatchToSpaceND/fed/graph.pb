
6
xPlaceholder*
dtype0*
shape:
2
pPlaceholder*
dtype0*
shape
:
H
BatchToSpaceND/block_shapeConst*
dtype0*
valueB:
m
BatchToSpaceNDBatchToSpaceNDxBatchToSpaceND/block_shapep*
T0*
Tcrops0*
Tblock_shape0"Ê