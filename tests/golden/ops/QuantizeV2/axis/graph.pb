
6
xPlaceholder*
dtype0*
shape:
.
aPlaceholder*
dtype0*
shape:
.
bPlaceholder*
dtype0*
shape:
—
q
QuantizeV2xab*
ensure_minimum_range%
×#<*
narrow_range(*
T0*
modeSCALED*#

round_modeHALF_AWAY_FROM_ZERO*

axis
*
BitcastBitcastq*
T0*

type0"Ê