
E
x0Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
E
x1Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
#
EluGradEluGradx0x1*
T0
 
y0IdentityEluGrad*
T0"Ê