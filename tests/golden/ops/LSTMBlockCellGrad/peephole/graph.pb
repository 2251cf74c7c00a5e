
2
xPlaceholder*
dtype0*
shape
:
8
cs_prevPlaceholder*
dtype0*
shape
:
7
h_prevPlaceholder*
dtype0*
shape
:
2
wPlaceholder*
dtype0*
shape
:
0
wciPlaceholder*
dtype0*
shape:
0
wcfPlaceholder*
dtype0*
shape:
0
wcoPlaceholder*
dtype0*
shape:
.
bPlaceholder*
dtype0*
shape:
2
iPlaceholder*
dtype0*
shape
:
3
csPlaceholder*
dtype0*
shape
:
2
fPlaceholder*
dtype0*
shape
:
2
oPlaceholder*
dtype0*
shape
:
3
ciPlaceholder*
dtype0*
shape
:
3
coPlaceholder*
dtype0*
shape
:
8
cs_gradPlaceholder*
dtype0*
shape
:
7
h_gradPlaceholder*
dtype0*
shape
:
‚
lLSTMBlockCellGradxcs_prevh_prevwwciwcfwcobicsfocicocs_gradh_grad*
T0*
use_peephole("Ê