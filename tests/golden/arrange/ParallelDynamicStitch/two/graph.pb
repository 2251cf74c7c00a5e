
.
iPlaceholder*
dtype0*
shape:
.
jPlaceholder*
dtype0*
shape:
2
dPlaceholder*
dtype0*
shape
:
2
ePlaceholder*
dtype0*
shape
:
L
ParallelDynamicStitchParallelDynamicStitchijde*
T0*
N"Ê