
k
xPlaceholder*
dtype0*L
shapeC:Aÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
k
gPlaceholder*
dtype0*L
shapeC:Aÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
w
	MaxPool3D	MaxPool3Dx*
strides	
*
ksize	
*
T0*
data_formatNDHWC*
paddingSAME
•
MaxPool3DGradGradMaxPool3DGradGradx	MaxPool3Dg*
strides	
*
paddingSAME*
T0*
data_formatNDHWC*
ksize	
"Ê