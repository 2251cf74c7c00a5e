
9
input_valuesPlaceholder*
dtype0*
shape:
9
input_splitsPlaceholder*
dtype0	*
shape:
ˆ
opUnicodeEncodeinput_valuesinput_splits*
Tsplits0	*
errorsstrict*
output_encodingUTF-8*
replacement_charýÿ"Ê