
^
xPlaceholder*
dtype0*?
shape6:4ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
2
oPlaceholder*
dtype0*
shape
:
.
sPlaceholder*
dtype0*
shape:
g
gExtractGlimpsexso*

normalized(*
centered(*
uniform_noise(*
noise	uniform"Ê