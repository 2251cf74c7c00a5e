
3
aiPlaceholder*
dtype0	*
shape
:
/
avPlaceholder*
dtype0*
shape:
/
asPlaceholder*
dtype0	*
shape:
3
biPlaceholder*
dtype0	*
shape
:
/
bvPlaceholder*
dtype0*
shape:
/
bsPlaceholder*
dtype0	*
shape:
:
opSparseSparseMaximumaiavasbibvbs*
T0"Ê