
7
iPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
jPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
dPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
?
ePlaceholder*
dtype0* 
shape:ÿÿÿÿÿÿÿÿÿ
<
DynamicStitchDynamicStitchijde*
T0*
N"Ê