
D
xPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
aPlaceholder*
dtype0	*
shape:
?
UniqueV2UniqueV2xa*
T0*
out_idx0*
Taxis0	"Ê