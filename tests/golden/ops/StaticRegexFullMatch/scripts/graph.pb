
.
xPlaceholder*
dtype0*
shape:
]
opStaticRegexFullMatchx*>
pattern31\p{Balinese}\p{Linear_A}[\p{Tai_Viet}\p{Yezidi}]?"Ê