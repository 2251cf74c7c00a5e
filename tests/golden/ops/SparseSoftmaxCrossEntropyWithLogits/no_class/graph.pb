
E
x0Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
8
x1Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
j
#SparseSoftmaxCrossEntropyWithLogits#SparseSoftmaxCrossEntropyWithLogitsx0x1*
T0*
Tlabels0
<
y0Identity#SparseSoftmaxCrossEntropyWithLogits*
T0
>
y1Identity%SparseSoftmaxCrossEntropyWithLogits:1*
T0"Ê