
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
4
x13Placeholder*
dtype0*
shape
:
4
x22Placeholder*
dtype0*
shape
:
4
x64Placeholder*
dtype0*
shape
:@
4
x77Placeholder*
dtype0*
shape
:M
5
x100Placeholder*
dtype0*
shape
:d
5
x121Placeholder*
dtype0*
shape
:y
6
x128Placeholder*
dtype0*
shape:	Ä
6
x143Placeholder*
dtype0*
shape:	è
6
x250Placeholder*
dtype0*
shape:	˙
6
x500Placeholder*
dtype0*
shape:	Ù
7
x1021Placeholder*
dtype0*
shape:	˝
7
x2047Placeholder*
dtype0*
shape:	ˇ

FFTFFTx2*
Tcomplex0

fx2IdentityFFT*
T0
 
IFFTIFFTx2*
Tcomplex0

ix2IdentityIFFT*
T0
 
FFT_1FFTx3*
Tcomplex0

fx3IdentityFFT_1*
T0
"
IFFT_1IFFTx3*
Tcomplex0
 
ix3IdentityIFFT_1*
T0
!
FFT_2FFTx13*
Tcomplex0
 
fx13IdentityFFT_2*
T0
#
IFFT_2IFFTx13*
Tcomplex0
!
ix13IdentityIFFT_2*
T0
!
FFT_3FFTx22*
Tcomplex0
 
fx22IdentityFFT_3*
T0
#
IFFT_3IFFTx22*
Tcomplex0
!
ix22IdentityIFFT_3*
T0
!
FFT_4FFTx64*
Tcomplex0
 
fx64IdentityFFT_4*
T0
#
IFFT_4IFFTx64*
Tcomplex0
!
ix64IdentityIFFT_4*
T0
!
FFT_5FFTx77*
Tcomplex0
 
fx77IdentityFFT_5*
T0
#
IFFT_5IFFTx77*
Tcomplex0
!
ix77IdentityIFFT_5*
T0
"
FFT_6FFTx100*
Tcomplex0
!
fx100IdentityFFT_6*
T0
$
IFFT_6IFFTx100*
Tcomplex0
"
ix100IdentityIFFT_6*
T0
"
FFT_7FFTx121*
Tcomplex0
!
fx121IdentityFFT_7*
T0
$
IFFT_7IFFTx121*
Tcomplex0
"
ix121IdentityIFFT_7*
T0
"
FFT_8FFTx128*
Tcomplex0
!
fx128IdentityFFT_8*
T0
$
IFFT_8IFFTx128*
Tcomplex0
"
ix128IdentityIFFT_8*
T0
"
FFT_9FFTx143*
Tcomplex0
!
fx143IdentityFFT_9*
T0
$
IFFT_9IFFTx143*
Tcomplex0
"
ix143IdentityIFFT_9*
T0
#
FFT_10FFTx250*
Tcomplex0
"
fx250IdentityFFT_10*
T0
%
IFFT_10IFFTx250*
Tcomplex0
#
ix250IdentityIFFT_10*
T0
#
FFT_11FFTx500*
Tcomplex0
"
fx500IdentityFFT_11*
T0
%
IFFT_11IFFTx500*
Tcomplex0
#
ix500IdentityIFFT_11*
T0
$
FFT_12FFTx1021*
Tcomplex0
#
fx1021IdentityFFT_12*
T0
&
IFFT_12IFFTx1021*
Tcomplex0
$
ix1021IdentityIFFT_12*
T0
$
FFT_13FFTx2047*
Tcomplex0
#
fx2047IdentityFFT_13*
T0
&
IFFT_13IFFTx2047*
Tcomplex0
$
ix2047IdentityIFFT_13*
T0" 