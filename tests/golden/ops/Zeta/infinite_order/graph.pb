
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
8
x1Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

ZetaZetax0x1*
T0
'
	Polygamma	Polygammax0x1*
T0

y0IdentityZeta*
T0
"
y1Identity	Polygamma*
T0"Ê