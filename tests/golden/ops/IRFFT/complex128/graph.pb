
;
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
n4/fft_lengthConst*
dtype0*
valueB:
:
n4IRFFTxn4/fft_length*
Tcomplex0*
Treal0
;
n5/fft_lengthConst*
dtype0*
valueB:
:
n5IRFFTxn5/fft_length*
Tcomplex0*
Treal0
;
n8/fft_lengthConst*
dtype0*
valueB:
:
n8IRFFTxn8/fft_length*
Tcomplex0*
Treal0
;
n1/fft_lengthConst*
dtype0*
valueB:
:
n1IRFFTxn1/fft_length*
Tcomplex0*
Treal0"Ê