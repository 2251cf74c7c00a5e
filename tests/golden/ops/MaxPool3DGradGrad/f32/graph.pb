
>
xPlaceholder*
dtype0*
shape:
>
yPlaceholder*
dtype0*
shape:
>
gPlaceholder*
dtype0*
shape:
}
pMaxPool3DGradGradxyg*
strides	
*
paddingSAME*
T0*
data_formatNDHWC*
ksize	
"Ê