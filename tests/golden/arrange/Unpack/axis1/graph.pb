
?
xPlaceholder*
dtype0* 
shape:ÿÿÿÿÿÿÿÿÿ
3
UnpackUnpackx*
T0*	
num*

axis"Ê