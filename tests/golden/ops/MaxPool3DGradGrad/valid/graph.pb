
k
xPlaceholder*
dtype0*L
shapeC:Aÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
k
gPlaceholder*
dtype0*L
shapeC:Aÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
x
	MaxPool3D	MaxPool3Dx*
strides	
*
paddingVALID*
T0*
data_formatNDHWC*
ksize	

–
MaxPool3DGradGradMaxPool3DGradGradx	MaxPool3Dg*
strides	
*
ksize	
*
T0*
data_formatNDHWC*
paddingVALID"Ê