
2
xPlaceholder*
dtype0	*
shape
:
d
DataFormatVecPermuteDataFormatVecPermutex*

dst_formatNHWC*
T0	*

src_formatNCHW"Ê