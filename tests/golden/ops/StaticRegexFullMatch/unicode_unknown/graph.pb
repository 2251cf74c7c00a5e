
2
inputPlaceholder*
dtype0*
shape:
>
opStaticRegexFullMatchinput*
pattern\p{Klingonese}"Ê