
<
x0Placeholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
8
x1Placeholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
/
x2Placeholder*
dtype0	*
shape:
<
x3Placeholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
8
x4Placeholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
/
x5Placeholder*
dtype0	*
shape:
N
EditDistanceEditDistancex0x1x2x3x4x5*
T0	*
	normalize(
%
y0IdentityEditDistance*
T0"Ê