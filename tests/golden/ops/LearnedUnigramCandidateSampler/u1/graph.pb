
=
true_classesPlaceholder*
dtype0	*
shape
:
ç
opLearnedUnigramCandidateSamplertrue_classes*
unique(*
num_true*

seed*
num_sampled*
seed2	*
	range_max" 