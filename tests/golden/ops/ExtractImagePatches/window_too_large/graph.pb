
^
xPlaceholder*
dtype0*?
shape6:4ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
t
pExtractImagePatchesx*
strides
*
ksizes
*
T0*
paddingVALID*
rates
"Ê