
.
xPlaceholder*
dtype0*
shape:
d
DataFormatVecPermuteDataFormatVecPermutex*

dst_formatNCHW*
T0*

src_formatNHWC"Ê