
<
aiPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
8
avPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
0
as_Placeholder*
dtype0	*
shape:
E
bbPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
~
SparseTensorDenseMatMulSparseTensorDenseMatMulaiavas_bb*
T0*
	adjoint_b(*
Tindices0	*
	adjoint_a("Ê