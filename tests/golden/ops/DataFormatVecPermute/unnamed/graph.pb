
;
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
d
DataFormatVecPermuteDataFormatVecPermutex*

dst_format4321*
T0*

src_format1234
,
yIdentityDataFormatVecPermute*
T0"Ê