
7
vPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
sPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
~
UnicodeEncodeUnicodeEncodevs*
output_encodingUTF-8*
errors	replace*
Tsplits0	*
replacement_charýÿ"Ê