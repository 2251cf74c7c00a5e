
3
x2Placeholder*
dtype0*
shape
:
3
x4Placeholder*
dtype0*
shape
:
3
x6Placeholder*
dtype0*
shape
:
4
x64Placeholder*
dtype0*
shape
:@
4
x77Placeholder*
dtype0*
shape
:M
6
x200Placeholder*
dtype0*
shape:	È
6
x256Placeholder*
dtype0*
shape:	€
6
x262Placeholder*
dtype0*
shape:	†
6
x500Placeholder*
dtype0*
shape:	ô
7
x1000Placeholder*
dtype0*
shape:	è
7
x1021Placeholder*
dtype0*
shape:	ý
8

rfft/ConstConst*
dtype0*
valueB:
=
rfft/fft_lengthConst*
dtype0*
valueB:
>
rfftRFFTx2rfft/fft_length*
Tcomplex0*
Treal0

rx2Identityrfft*
T0
:
rfft_1/ConstConst*
dtype0*
valueB:
?
rfft_1/fft_lengthConst*
dtype0*
valueB:
B
rfft_1RFFTx2rfft_1/fft_length*
Tcomplex0*
Treal0
 
cx2Identityrfft_1*
T0
:
rfft_2/ConstConst*
dtype0*
valueB:
?
rfft_2/fft_lengthConst*
dtype0*
valueB:
B
rfft_2RFFTx4rfft_2/fft_length*
Tcomplex0*
Treal0
 
rx4Identityrfft_2*
T0
:
rfft_3/ConstConst*
dtype0*
valueB:
?
rfft_3/fft_lengthConst*
dtype0*
valueB:
B
rfft_3RFFTx4rfft_3/fft_length*
Tcomplex0*
Treal0
 
cx4Identityrfft_3*
T0
:
rfft_4/ConstConst*
dtype0*
valueB:
?
rfft_4/fft_lengthConst*
dtype0*
valueB:
B
rfft_4RFFTx6rfft_4/fft_length*
Tcomplex0*
Treal0
 
rx6Identityrfft_4*
T0
:
rfft_5/ConstConst*
dtype0*
valueB:
?
rfft_5/fft_lengthConst*
dtype0*
valueB:
B
rfft_5RFFTx6rfft_5/fft_length*
Tcomplex0*
Treal0
 
cx6Identityrfft_5*
T0
:
rfft_6/ConstConst*
dtype0*
valueB:@
?
rfft_6/fft_lengthConst*
dtype0*
valueB:@
C
rfft_6RFFTx64rfft_6/fft_length*
Tcomplex0*
Treal0
!
rx64Identityrfft_6*
T0
:
rfft_7/ConstConst*
dtype0*
valueB:>
?
rfft_7/fft_lengthConst*
dtype0*
valueB:>
C
rfft_7RFFTx64rfft_7/fft_length*
Tcomplex0*
Treal0
!
cx64Identityrfft_7*
T0
:
rfft_8/ConstConst*
dtype0*
valueB:M
?
rfft_8/fft_lengthConst*
dtype0*
valueB:M
C
rfft_8RFFTx77rfft_8/fft_length*
Tcomplex0*
Treal0
!
rx77Identityrfft_8*
T0
:
rfft_9/ConstConst*
dtype0*
valueB:K
?
rfft_9/fft_lengthConst*
dtype0*
valueB:K
C
rfft_9RFFTx77rfft_9/fft_length*
Tcomplex0*
Treal0
!
cx77Identityrfft_9*
T0
<
rfft_10/ConstConst*
dtype0*
valueB:È
A
rfft_10/fft_lengthConst*
dtype0*
valueB:È
F
rfft_10RFFTx200rfft_10/fft_length*
Tcomplex0*
Treal0
#
rx200Identityrfft_10*
T0
<
rfft_11/ConstConst*
dtype0*
valueB:Æ
A
rfft_11/fft_lengthConst*
dtype0*
valueB:Æ
F
rfft_11RFFTx200rfft_11/fft_length*
Tcomplex0*
Treal0
#
cx200Identityrfft_11*
T0
<
rfft_12/ConstConst*
dtype0*
valueB:€
A
rfft_12/fft_lengthConst*
dtype0*
valueB:€
F
rfft_12RFFTx256rfft_12/fft_length*
Tcomplex0*
Treal0
#
rx256Identityrfft_12*
T0
<
rfft_13/ConstConst*
dtype0*
valueB:þ
A
rfft_13/fft_lengthConst*
dtype0*
valueB:þ
F
rfft_13RFFTx256rfft_13/fft_length*
Tcomplex0*
Treal0
#
cx256Identityrfft_13*
T0
<
rfft_14/ConstConst*
dtype0*
valueB:†
A
rfft_14/fft_lengthConst*
dtype0*
valueB:†
F
rfft_14RFFTx262rfft_14/fft_length*
Tcomplex0*
Treal0
#
rx262Identityrfft_14*
T0
<
rfft_15/ConstConst*
dtype0*
valueB:„
A
rfft_15/fft_lengthConst*
dtype0*
valueB:„
F
rfft_15RFFTx262rfft_15/fft_length*
Tcomplex0*
Treal0
#
cx262Identityrfft_15*
T0
<
rfft_16/ConstConst*
dtype0*
valueB:ô
A
rfft_16/fft_lengthConst*
dtype0*
valueB:ô
F
rfft_16RFFTx500rfft_16/fft_length*
Tcomplex0*
Treal0
#
rx500Identityrfft_16*
T0
<
rfft_17/ConstConst*
dtype0*
valueB:ò
A
rfft_17/fft_lengthConst*
dtype0*
valueB:ò
F
rfft_17RFFTx500rfft_17/fft_length*
Tcomplex0*
Treal0
#
cx500Identityrfft_17*
T0
<
rfft_18/ConstConst*
dtype0*
valueB:è
A
rfft_18/fft_lengthConst*
dtype0*
valueB:è
G
rfft_18RFFTx1000rfft_18/fft_length*
Tcomplex0*
Treal0
$
rx1000Identityrfft_18*
T0
<
rfft_19/ConstConst*
dtype0*
valueB:æ
A
rfft_19/fft_lengthConst*
dtype0*
valueB:æ
G
rfft_19RFFTx1000rfft_19/fft_length*
Tcomplex0*
Treal0
$
cx1000Identityrfft_19*
T0
<
rfft_20/ConstConst*
dtype0*
valueB:ý
A
rfft_20/fft_lengthConst*
dtype0*
valueB:ý
G
rfft_20RFFTx1021rfft_20/fft_length*
Tcomplex0*
Treal0
$
rx1021Identityrfft_20*
T0
<
rfft_21/ConstConst*
dtype0*
valueB:û
A
rfft_21/fft_lengthConst*
dtype0*
valueB:û
G
rfft_21RFFTx1021rfft_21/fft_length*
Tcomplex0*
Treal0
$
cx1021Identityrfft_21*
T0"Ê