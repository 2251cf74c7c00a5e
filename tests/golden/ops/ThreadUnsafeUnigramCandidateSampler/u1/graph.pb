
=
true_classesPlaceholder*
dtype0	*
shape
:
’
op#ThreadUnsafeUnigramCandidateSamplertrue_classes*
unique(*
num_true*

seed*
num_sampled*
seed2	*
	range_max"Ê