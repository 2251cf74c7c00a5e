
;
xPlaceholder*
dtype0
*
shape:ÿÿÿÿÿÿÿÿÿ

yDeepCopyx*
T0
"Ê