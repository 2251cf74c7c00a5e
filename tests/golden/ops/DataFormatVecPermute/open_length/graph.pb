
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
D
yPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
d
DataFormatVecPermuteDataFormatVecPermutex*

dst_formatNCHW*

src_formatNHWC*
T0
,
aIdentityDataFormatVecPermute*
T0
f
DataFormatVecPermute_1DataFormatVecPermutey*

dst_formatHWNC*
T0*

src_formatNCHW
.
bIdentityDataFormatVecPermute_1*
T0"Ê