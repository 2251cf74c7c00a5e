
5
dataPlaceholder*
dtype0*
shape
:
8
segment_idsPlaceholder*
dtype0*
shape:
<
op
SegmentMaxdatasegment_ids*
T0*
Tindices0"Ê