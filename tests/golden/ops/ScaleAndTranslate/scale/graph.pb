
:
xPlaceholder*
dtype0*
shape:	
.
zPlaceholder*
dtype0*
shape:
.
sPlaceholder*
dtype0*
shape:
.
tPlaceholder*
dtype0*
shape:
Y
s_1ScaleAndTranslatexzst*
kernel_type
lanczos3*
T0*
	antialias("Ê