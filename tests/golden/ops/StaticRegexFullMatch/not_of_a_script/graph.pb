
.
xPlaceholder*
dtype0*
shape:
@
opStaticRegexFullMatchx*!
pattern\P{Greek}+[^\p{Lao}]"Ê