
2
xPlaceholder*
dtype0
*
shape
:
2
yPlaceholder*
dtype0
*
shape
:

	LogicalOr	LogicalOrxy"Ê