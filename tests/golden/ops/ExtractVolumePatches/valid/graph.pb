
>
xPlaceholder*
dtype0*
shape:
d
pExtractVolumePatchesx*
strides	
*
ksizes	
*
T0*
paddingVALID"Ê