
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
*
EncodeBase64EncodeBase64x*	
pad("Ê