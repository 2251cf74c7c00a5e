
D
xPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
I
h_prevPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
G
w_ruPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
F
w_cPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
:
b_ruPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
9
b_cPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
lGRUBlockCellxh_prevw_ruw_cb_rub_c*
T0"Ê