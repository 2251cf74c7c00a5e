
?
aPlaceholder*
dtype0* 
shape:ÿÿÿÿÿÿÿÿÿ
;
bPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

yAddab*
T0"Ê