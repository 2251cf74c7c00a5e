
7
xPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
+
UniqueUniquex*
T0	*
out_idx0"Ê