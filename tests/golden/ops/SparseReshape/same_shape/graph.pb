
;
iPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
.
dPlaceholder*
dtype0	*
shape:
.
nPlaceholder*
dtype0	*
shape:
'
SparseReshapeSparseReshapeidn
%
yIdentitySparseReshape*
T0	"Ê