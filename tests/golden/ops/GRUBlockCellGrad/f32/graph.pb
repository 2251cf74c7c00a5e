
2
xPlaceholder*
dtype0*
shape
:
7
h_prevPlaceholder*
dtype0*
shape
:
5
w_ruPlaceholder*
dtype0*
shape
:
4
w_cPlaceholder*
dtype0*
shape
:
1
b_ruPlaceholder*
dtype0*
shape:
0
b_cPlaceholder*
dtype0*
shape:
2
rPlaceholder*
dtype0*
shape
:
2
uPlaceholder*
dtype0*
shape
:
2
cPlaceholder*
dtype0*
shape
:
4
d_hPlaceholder*
dtype0*
shape
:
M
lGRUBlockCellGradxh_prevw_ruw_cb_rub_crucd_h*
T0"Ê