
D
xPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
sPlaceholder*
dtype0*
shape:
.
aPlaceholder*
dtype0*
shape:
9
RollRollxsa*
Tshift0*
T0*
Taxis0"Ê