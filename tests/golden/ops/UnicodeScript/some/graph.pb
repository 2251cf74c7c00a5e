
6
inputPlaceholder*
dtype0*
shape
:

opUnicodeScriptinput"Ê