
8
x0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
8
x1Placeholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ

UnicodeEncodeUnicodeEncodex0x1*
output_encodingUTF-8*
errorsignore*
Tsplits0	*
replacement_charýÿ
‚
UnicodeEncode_1UnicodeEncodex0x1*
output_encodingUTF-8*
errors	replace*
Tsplits0	*
replacement_charýÿ
&
y0IdentityUnicodeEncode*
T0
(
y1IdentityUnicodeEncode_1*
T0"Ê