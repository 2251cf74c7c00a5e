
6
xPlaceholder*
dtype0*
shape:
2
pPlaceholder*
dtype0*
shape
:
H
SpaceToBatchND/block_shapeConst*
dtype0*
valueB:
p
SpaceToBatchNDSpaceToBatchNDxSpaceToBatchND/block_shapep*
T0*
	Tpaddings0*
Tblock_shape0"Ê