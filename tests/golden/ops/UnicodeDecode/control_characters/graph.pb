
2
inputPlaceholder*
dtype0*
shape:
“
opUnicodeDecodeinput* 
replace_control_characters(*
errors	replace*
Tsplits0	*
replacement_char**
input_encodingUTF-8"Ê