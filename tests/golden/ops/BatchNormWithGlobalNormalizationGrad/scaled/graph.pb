
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
2
gammaPlaceholder*
dtype0*
shape:
A
backpropPlaceholder*
dtype0*
shape:
ˆ
n$BatchNormWithGlobalNormalizationGradtmvgammabackprop*
T0*
scale_after_normalization(*
variance_epsilon%
×#<"