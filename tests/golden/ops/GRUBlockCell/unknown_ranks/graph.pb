
,
xPlaceholder*
dtype0*
shape:
,
hPlaceholder*
dtype0*
shape:
/
w_ruPlaceholder*
dtype0*
shape:
.
w_cPlaceholder*
dtype0*
shape:
/
b_ruPlaceholder*
dtype0*
shape:
.
b_cPlaceholder*
dtype0*
shape:
A
GRUBlockCellGRUBlockCellxhw_ruw_cb_rub_c*
T0
&
yIdentityGRUBlockCell:3*
T0"Ê