
7
vPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
sPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
Ã
$CompositeTensorVariantFromComponents$CompositeTensorVariantFromComponentsvs*X
metadataLJ
H0¢-
úÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
€
`
€	RaggedTensorSpec *
Tcomponents
2	
Q
SerializeTensorSerializeTensor$CompositeTensorVariantFromComponents*
T0
'
bIdentitySerializeTensor*
T0
-
ParseTensorParseTensorb*
out_type0
Æ
"CompositeTensorVariantToComponents"CompositeTensorVariantToComponentsParseTensor*X
metadataLJ
H0¢-
úÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
€
`
€	RaggedTensorSpec *
Tcomponents
2	
:
wIdentity"CompositeTensorVariantToComponents*
T0
<
tIdentity$CompositeTensorVariantToComponents:1*
T0	"Ê