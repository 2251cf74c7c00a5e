
6
dPlaceholder*
dtype0*
shape:
2
pPlaceholder*
dtype0*
shape
:
I
DynamicPartitionDynamicPartitiondp*
T0*
num_partitions"Ê