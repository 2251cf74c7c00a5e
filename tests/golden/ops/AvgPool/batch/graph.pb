
:
xPlaceholder*
dtype0*
shape:
j
pAvgPoolx*
strides
*
paddingSAME*
T0*
data_formatNHWC*
ksize
"Ê