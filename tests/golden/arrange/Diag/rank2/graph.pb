
;
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ

DiagDiagx*
T0"Ê