
9
input_valuesPlaceholder*
dtype0*
shape:
9
input_splitsPlaceholder*
dtype0	*
shape:
‡
opUnicodeEncodeinput_valuesinput_splits*
output_encodingUTF-8*
errors	replace*
Tsplits0	*
replacement_char?"Ê