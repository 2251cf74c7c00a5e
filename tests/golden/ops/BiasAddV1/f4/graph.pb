
Q
xPlaceholder*
dtype0*2
shape):'ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
7
bPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
%
	BiasAddV1	BiasAddV1xb*
T0"Ê