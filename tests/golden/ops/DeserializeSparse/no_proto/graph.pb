
>
serialized_sparsePlaceholder*
dtype0*
shape:
J
opDeserializeSparseserialized_sparse*
Tserialized0*
dtype0"Ê