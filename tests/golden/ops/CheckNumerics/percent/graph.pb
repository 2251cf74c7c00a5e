
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
:
badCheckNumericsx*
T0*
message50%, row %d"Ê