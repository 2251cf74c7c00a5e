
/
sConst*
dtype0*
valueB:
Z
aStatefulPartitionedCalls*
Tin
2*
Tout
2*
fR
F
D0
S
^
bStatefulPartitionedCalls^a*
Tin
2*
Tout
2*
fR
F
D0
S
^
cStatefulPartitionedCalls^b*
Tin
2*
Tout
2*
fR
F
D0
S
^
dStatefulPartitionedCalls^c*
Tin
2*
Tout
2*
fR
F
D0
S™
–
*
F
s
y"D"	
Dtype"
SintˆF
rRandomUniforms*
T0*
dtypeJD*
seed2*
seedJS"
y
r:output:0*
	_noinline("Ê