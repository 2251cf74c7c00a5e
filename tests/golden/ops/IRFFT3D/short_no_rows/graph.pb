
_
x0Placeholder*
dtype0*?
shape6:4ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
/
x1Placeholder*
dtype0*
shape:
7
IRFFT3DIRFFT3Dx0x1*
Tcomplex0*
Treal0
 
y0IdentityIRFFT3D*
T0"Ê