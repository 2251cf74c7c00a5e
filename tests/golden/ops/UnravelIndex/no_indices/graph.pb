
8
x0Placeholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
8
x1Placeholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
0
UnravelIndexUnravelIndexx0x1*

Tidx0	
%
y0IdentityUnravelIndex*
T0	"Ê