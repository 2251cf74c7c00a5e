
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
*
paddingSAME*
T0*
data_formatNDHWC*
ksize	

›
MaxPool3DGradMaxPool3DGradx	MaxPool3Dg*
strides	
*
TInput0*
ksize	
*
T0*
data_formatNDHWC*
paddingSAME"Ê