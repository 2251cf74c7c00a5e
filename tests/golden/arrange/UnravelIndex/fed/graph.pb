
.
iPlaceholder*
dtype0	*
shape:
.
dPlaceholder*
dtype0	*
shape:
.
UnravelIndexUnravelIndexid*

Tidx0	"Ê