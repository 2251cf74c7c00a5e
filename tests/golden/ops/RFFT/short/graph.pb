
2
inputPlaceholder*
dtype0*
shape:
8

fft_lengthConst*
dtype0*
valueB:
:
opRFFTinput
fft_length*
Tcomplex0*
Treal0"Ê