
;
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
.
sPlaceholder*
dtype0*
shape:
5
BroadcastToBroadcastToxs*

Tidx0*
T0
#
zIdentityBroadcastTo*
T0"Ê