
:
	indices_0Placeholder*
dtype0	*
shape
:
:
	indices_1Placeholder*
dtype0	*
shape
:
5
values_0Placeholder*
dtype0*
shape:
5
values_1Placeholder*
dtype0	*
shape:
5
shapes_0Placeholder*
dtype0	*
shape:
5
shapes_1Placeholder*
dtype0	*
shape:
?
dense_inputs_0Placeholder*
dtype0*
shape
:
ø
opSparseCross	indices_0	indices_1values_0values_1shapes_0shapes_1dense_inputs_0*
hashed_output(*
dense_types
2*
internal_type0	*
out_type0	*
sparse_types
2	*
hash_keyþßò×ì*
num_bucketsd*
N"Ê