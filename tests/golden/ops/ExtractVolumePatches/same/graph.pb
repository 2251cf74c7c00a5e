
>
xPlaceholder*
dtype0*
shape:
c
pExtractVolumePatchesx*
strides	
*
ksizes	
*
T0*
paddingSAME"Ê