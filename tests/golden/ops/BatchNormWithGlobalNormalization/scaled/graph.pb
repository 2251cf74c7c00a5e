
:
tPlaceholder*
dtype0*
shape:
.
mPlaceholder*
dtype0*
shape:
.
vPlaceholder*
dtype0*
shape:
1
betaPlaceholder*
dtype0*
shape:
2
gammaPlaceholder*
dtype0*
shape:
€
n BatchNormWithGlobalNormalizationtmvbetagamma*
scale_after_normalization(*
T0*
variance_epsilon%
×#<"