
-
i1Placeholder*
dtype0	*
shape:
-
i2Placeholder*
dtype0	*
shape:
-
s1Placeholder*
dtype0	*
shape:
-
s2Placeholder*
dtype0	*
shape:
-
v1Placeholder*
dtype0*
shape:
-
v2Placeholder*
dtype0*
shape:
X
SparseConcatSparseConcati1i2v1v2s1s2*

concat_dim*
T0*
N
$
yIdentitySparseConcat*
T0	
&
zIdentitySparseConcat:1*
T0
&
sIdentitySparseConcat:2*
T0	"Ê