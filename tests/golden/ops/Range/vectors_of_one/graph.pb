
,
aPlaceholder*
dtype0*
shape:
,
lPlaceholder*
dtype0*
shape:
,
ePlaceholder*
dtype0*
shape:

yRangeale*

Tidx0"Ê