
3
x2Placeholder*
dtype0*
shape
:
3
x3Placeholder*
dtype0*
shape
:
3
x4Placeholder*
dtype0*
shape
:
4
x33Placeholder*
dtype0*
shape
:!
5
x101Placeholder*
dtype0*
shape
:e
6
x129Placeholder*
dtype0*
shape:	
6
x132Placeholder*
dtype0*
shape:	„
6
x501Placeholder*
dtype0*
shape:	õ
9
irfft/ConstConst*
dtype0*
valueB:
>
irfft/fft_lengthConst*
dtype0*
valueB:
A
irfftIRFFTx2irfft/fft_length*
Tcomplex0*
Treal0

rx2Identityirfft*
T0
;
irfft_1/ConstConst*
dtype0*
valueB:
@
irfft_1/fft_lengthConst*
dtype0*
valueB:
E
irfft_1IRFFTx2irfft_1/fft_length*
Tcomplex0*
Treal0
!
cx2Identityirfft_1*
T0
;
irfft_2/ConstConst*
dtype0*
valueB:
@
irfft_2/fft_lengthConst*
dtype0*
valueB:
E
irfft_2IRFFTx3irfft_2/fft_length*
Tcomplex0*
Treal0
!
rx3Identityirfft_2*
T0
;
irfft_3/ConstConst*
dtype0*
valueB:
@
irfft_3/fft_lengthConst*
dtype0*
valueB:
E
irfft_3IRFFTx3irfft_3/fft_length*
Tcomplex0*
Treal0
!
cx3Identityirfft_3*
T0
;
irfft_4/ConstConst*
dtype0*
valueB:
@
irfft_4/fft_lengthConst*
dtype0*
valueB:
E
irfft_4IRFFTx4irfft_4/fft_length*
Tcomplex0*
Treal0
!
rx4Identityirfft_4*
T0
;
irfft_5/ConstConst*
dtype0*
valueB:
@
irfft_5/fft_lengthConst*
dtype0*
valueB:
E
irfft_5IRFFTx4irfft_5/fft_length*
Tcomplex0*
Treal0
!
cx4Identityirfft_5*
T0
;
irfft_6/ConstConst*
dtype0*
valueB:@
@
irfft_6/fft_lengthConst*
dtype0*
valueB:@
F
irfft_6IRFFTx33irfft_6/fft_length*
Tcomplex0*
Treal0
"
rx33Identityirfft_6*
T0
;
irfft_7/ConstConst*
dtype0*
valueB:?
@
irfft_7/fft_lengthConst*
dtype0*
valueB:?
F
irfft_7IRFFTx33irfft_7/fft_length*
Tcomplex0*
Treal0
"
cx33Identityirfft_7*
T0
<
irfft_8/ConstConst*
dtype0*
valueB:È
A
irfft_8/fft_lengthConst*
dtype0*
valueB:È
G
irfft_8IRFFTx101irfft_8/fft_length*
Tcomplex0*
Treal0
#
rx101Identityirfft_8*
T0
<
irfft_9/ConstConst*
dtype0*
valueB:Ç
A
irfft_9/fft_lengthConst*
dtype0*
valueB:Ç
G
irfft_9IRFFTx101irfft_9/fft_length*
Tcomplex0*
Treal0
#
cx101Identityirfft_9*
T0
=
irfft_10/ConstConst*
dtype0*
valueB:€
B
irfft_10/fft_lengthConst*
dtype0*
valueB:€
I
irfft_10IRFFTx129irfft_10/fft_length*
Tcomplex0*
Treal0
$
rx129Identityirfft_10*
T0
=
irfft_11/ConstConst*
dtype0*
valueB:ÿ
B
irfft_11/fft_lengthConst*
dtype0*
valueB:ÿ
I
irfft_11IRFFTx129irfft_11/fft_length*
Tcomplex0*
Treal0
$
cx129Identityirfft_11*
T0
=
irfft_12/ConstConst*
dtype0*
valueB:†
B
irfft_12/fft_lengthConst*
dtype0*
valueB:†
I
irfft_12IRFFTx132irfft_12/fft_length*
Tcomplex0*
Treal0
$
rx132Identityirfft_12*
T0
=
irfft_13/ConstConst*
dtype0*
valueB:…
B
irfft_13/fft_lengthConst*
dtype0*
valueB:…
I
irfft_13IRFFTx132irfft_13/fft_length*
Tcomplex0*
Treal0
$
cx132Identityirfft_13*
T0
=
irfft_14/ConstConst*
dtype0*
valueB:è
B
irfft_14/fft_lengthConst*
dtype0*
valueB:è
I
irfft_14IRFFTx501irfft_14/fft_length*
Tcomplex0*
Treal0
$
rx501Identityirfft_14*
T0
=
irfft_15/ConstConst*
dtype0*
valueB:ç
B
irfft_15/fft_lengthConst*
dtype0*
valueB:ç
I
irfft_15IRFFTx501irfft_15/fft_length*
Tcomplex0*
Treal0
$
cx501Identityirfft_15*
T0"Ê