
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
3
StringUpperStringUpperx0*
encodingutf-8
$
y0IdentityStringUpper*
T0"Ê