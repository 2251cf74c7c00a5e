
4
x64Placeholder*
dtype0*
shape
:@
4
x77Placeholder*
dtype0*
shape
:M
6
x131Placeholder*
dtype0*
shape:	É
6
x143Placeholder*
dtype0*
shape:	è
6
x250Placeholder*
dtype0*
shape:	˙
7
x1021Placeholder*
dtype0*
shape:	˝

FFTFFTx64*
Tcomplex0

fx64IdentityFFT*
T0
!
IFFTIFFTx64*
Tcomplex0

ix64IdentityIFFT*
T0
!
FFT_1FFTx77*
Tcomplex0
 
fx77IdentityFFT_1*
T0
#
IFFT_1IFFTx77*
Tcomplex0
!
ix77IdentityIFFT_1*
T0
"
FFT_2FFTx131*
Tcomplex0
!
fx131IdentityFFT_2*
T0
$
IFFT_2IFFTx131*
Tcomplex0
"
ix131IdentityIFFT_2*
T0
"
FFT_3FFTx143*
Tcomplex0
!
fx143IdentityFFT_3*
T0
$
IFFT_3IFFTx143*
Tcomplex0
"
ix143IdentityIFFT_3*
T0
"
FFT_4FFTx250*
Tcomplex0
!
fx250IdentityFFT_4*
T0
$
IFFT_4IFFTx250*
Tcomplex0
"
ix250IdentityIFFT_4*
T0
#
FFT_5FFTx1021*
Tcomplex0
"
fx1021IdentityFFT_5*
T0
%
IFFT_5IFFTx1021*
Tcomplex0
#
ix1021IdentityIFFT_5*
T0" 