
>
xPlaceholder*
dtype0*
shape:
>
wPlaceholder*
dtype0*
shape:
>
gPlaceholder*
dtype0*
shape:
k
cConv3DBackpropInputxwg*
strides	
*
	dilations	
*
T0*
paddingSAME"	