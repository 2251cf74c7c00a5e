
:
xPlaceholder*
dtype0*
shape:
:
gPlaceholder*
dtype0*
shape:
:
aPlaceholder*
dtype0	*
shape:
•
mMaxPoolGradWithArgmaxxga*
strides
*
Targmax0	*
include_batch_in_index(*
T0*
ksize
*
paddingVALID"Ê