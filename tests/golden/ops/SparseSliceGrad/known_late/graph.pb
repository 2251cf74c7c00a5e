
G
backprop_val_gradPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
P
input_indicesPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
A
input_startPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
Q
output_indicesPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
]
opSparseSliceGradbackprop_val_gradinput_indicesinput_startoutput_indices*
T0"Ê