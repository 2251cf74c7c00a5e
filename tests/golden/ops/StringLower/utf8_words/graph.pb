
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
3
StringLowerStringLowerx0*
encodingutf-8
$
y0IdentityStringLower*
T0"Ê