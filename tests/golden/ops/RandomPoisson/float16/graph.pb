

oldNoOp
7
rPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
5
y/shapeConst*
dtype0*
valueB:
M
yRandomPoissony/shaper*
dtype0*

seed*
S0*
seed2	"