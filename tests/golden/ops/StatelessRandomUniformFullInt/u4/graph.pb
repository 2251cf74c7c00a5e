
7
sPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
Q
#StatelessRandomUniformFullInt/shapeConst*
dtype0*
valueB:
‰
StatelessRandomUniformFullIntStatelessRandomUniformFullInt#StatelessRandomUniformFullInt/shapes*
dtype0*
T0*
Tseed0	"Ê