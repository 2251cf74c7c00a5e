
=
true_classesPlaceholder*
dtype0	*
shape
:
q
opAllCandidateSamplertrue_classes*
unique(*
num_true*

seed*
num_sampled*
seed2	"Ê