
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
2
StringLowerStringLowerx*
encodingutf-8"Ê