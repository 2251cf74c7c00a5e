
^
gPlaceholder*
dtype0*?
shape6:4ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
^
xPlaceholder*
dtype0*?
shape6:4ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
7
sPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
mPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
vPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
|
FusedBatchNormGradFusedBatchNormGradgxsmv*
is_training(*
T0*
data_formatNHWC*
epsilon%ทั8"ส