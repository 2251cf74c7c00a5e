
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
yPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
cPlaceholder*
dtype0
*
shape:ÿÿÿÿÿÿÿÿÿ
&
SelectV2SelectV2cxy*
T0
 
zIdentitySelectV2*
T0
=
EqualEqualxy*
incompatible_shape_error(*
T0

eIdentityEqual*
T0


LessLessxy*
T0
!

LogicalAnd
LogicalAndLessc
"
lIdentity
LogicalAnd*
T0
"Ê