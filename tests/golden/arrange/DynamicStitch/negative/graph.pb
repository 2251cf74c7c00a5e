
7
iPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
dPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
6
DynamicStitchDynamicStitchid*
T0*
N"Ê