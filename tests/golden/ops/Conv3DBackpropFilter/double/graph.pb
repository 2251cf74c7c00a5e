
>
xPlaceholder*
dtype0*
shape:
>
wPlaceholder*
dtype0*
shape:
>
gPlaceholder*
dtype0*
shape:
l
cConv3DBackpropFilterxwg*
strides	
*
	dilations	
*
T0*
paddingSAME"	