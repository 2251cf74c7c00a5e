

OptionalNoneOptionalNone
d
OptionalGetValueOptionalGetValueOptionalNone*
output_shapes
:*
output_types
2
(
aIdentityOptionalGetValue*
T0"Ê