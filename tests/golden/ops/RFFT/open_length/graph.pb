
E
x0Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
/
x1Placeholder*
dtype0*
shape:
1
RFFTRFFTx0x1*
Tcomplex0*
Treal0

y0IdentityRFFT*
T0"Ê