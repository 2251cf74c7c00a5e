
D
xPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
d
DataFormatVecPermuteDataFormatVecPermutex*

dst_formatNCHW*
T0*

src_formatNHWC
,
aIdentityDataFormatVecPermute*
T0"Ê