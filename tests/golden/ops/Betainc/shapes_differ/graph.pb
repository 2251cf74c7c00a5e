
-
x0Placeholder*
dtype0*
shape:
-
x1Placeholder*
dtype0*
shape:
-
x2Placeholder*
dtype0*
shape:
'
BetaincBetaincx0x1x2*
T0
 
y0IdentityBetainc*
T0"Ê