
7
sPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
R
StatelessRandomGetKeyCounterAlgStatelessRandomGetKeyCounterAlgs*
Tseed0	"Ê