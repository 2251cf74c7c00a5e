
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
?
UniqueWithCountsUniqueWithCountsx*
T0*
out_idx0"Ê