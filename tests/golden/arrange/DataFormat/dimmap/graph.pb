
.
xPlaceholder*
dtype0*
shape:
\
DataFormatDimMapDataFormatDimMapx*

dst_formatNCHW*

src_formatNHWC*
T0"Ê