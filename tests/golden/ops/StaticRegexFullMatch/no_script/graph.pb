
.
xPlaceholder*
dtype0*
shape:
7
opStaticRegexFullMatchx*
pattern\p{Klingon}"Ê