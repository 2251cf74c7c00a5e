
:
xPlaceholder*
dtype0*
shape:
.
sPlaceholder*
dtype0*
shape:
.
oPlaceholder*
dtype0*
shape:
.
mPlaceholder*
dtype0*
shape:
.
vPlaceholder*
dtype0*
shape:
“
bFusedBatchNormV3xsomv*
is_training(*
T0*
exponential_avg_factor%š™™>*
U0*
data_formatNHWC*
epsilon%·Ñ8"Ê