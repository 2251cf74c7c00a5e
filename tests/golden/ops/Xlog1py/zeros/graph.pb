
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
yPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
!
Xlog1pyXlog1pyxy*
T0"Ê