
>
reverse_index_mapPlaceholder*
dtype0	*
shape:
8
grad_valuesPlaceholder*
dtype0*
shape:
F
opRaggedFillEmptyRowsGradreverse_index_mapgrad_values*
T0"Ê