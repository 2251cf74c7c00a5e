
2
indexPlaceholder*
dtype0*
shape:
5
seedPlaceholder*
dtype0*
shape
:
6
	max_indexPlaceholder*
dtype0*
shape:
X
opRandomIndexShuffleindexseed	max_index*
dtype0*
rounds*
Tseed0"Ê