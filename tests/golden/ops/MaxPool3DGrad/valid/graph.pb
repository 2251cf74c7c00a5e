
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
ksize	
*
T0*
data_formatNDHWC*
paddingVALID
œ
MaxPool3DGradMaxPool3DGradx	MaxPool3Dg*
strides	
*
paddingVALID*
T0*
TInput0*
data_formatNDHWC*
ksize	
"Ê