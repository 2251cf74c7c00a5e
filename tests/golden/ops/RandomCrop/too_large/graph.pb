
6
xPlaceholder*
dtype0*
shape:
.
sPlaceholder*
dtype0	*
shape:
7
r
RandomCropxs*

seed*
T0*
seed2"