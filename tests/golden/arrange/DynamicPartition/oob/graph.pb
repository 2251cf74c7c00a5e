
;
dPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
pPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
I
DynamicPartitionDynamicPartitiondp*
T0*
num_partitions"Ê