
:
inputPlaceholder*
dtype0*
shape:

opBatchIFFT2Dinput"
