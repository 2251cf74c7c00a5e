
2
inputPlaceholder*
dtype0*
shape:
0
posPlaceholder*
dtype0*
shape:
0
lenPlaceholder*
dtype0*
shape:
6
opSubstrinputposlen*
unitBYTE*
T0"Ê