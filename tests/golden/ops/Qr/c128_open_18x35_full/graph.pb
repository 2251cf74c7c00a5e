
H
inputPlaceholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
-
QrQrinput*
T0*
full_matrices(
/
Qr_1Qrinput*
T0*
full_matrices(

qIdentityQr*
T0

rIdentityQr_1:1*
T0"Ê