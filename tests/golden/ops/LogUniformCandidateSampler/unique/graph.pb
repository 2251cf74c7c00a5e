
D
tPlaceholder*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
–
LogUniformCandidateSamplerLogUniformCandidateSamplert*
	range_max(*
num_true*

seed*
num_sampled*
seed2	*
unique("Ê