
H
xPlaceholder*
dtype0*)
shape :ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
bPlaceholder*
dtype0	*
shape:
.
sPlaceholder*
dtype0	*
shape:
-
SliceSlicexbs*
Index0	*
T0"Ê