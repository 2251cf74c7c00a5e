
H
xPlaceholder*
dtype0*)
shape :ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
8
slPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
f
CTCGreedyDecoderCTCGreedyDecoderxsl*
blank_indexÿÿÿÿÿÿÿÿÿ*
T0*
merge_repeated("Ê