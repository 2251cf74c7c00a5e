
:
xPlaceholder*
dtype0*
shape:
 
DiagPartDiagPartx*
T0"Ê