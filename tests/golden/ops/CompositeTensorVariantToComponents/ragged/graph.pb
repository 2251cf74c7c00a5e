
7
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
7
sPlaceholder*
dtype0	*
shape:ÿÿÿÿÿÿÿÿÿ
Á
$CompositeTensorVariantFromComponents$CompositeTensorVariantFromComponentsxs*V
metadataJH0¢-
úÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
€
`
€	RaggedTensorSpec *
Tcomponents
2	
C
IdentityIdentity$CompositeTensorVariantFromComponents*
T0
Á
"CompositeTensorVariantToComponents"CompositeTensorVariantToComponentsIdentity*V
metadataJH0¢-
úÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
€
`
€	RaggedTensorSpec *
Tcomponents
2	
:
aIdentity"CompositeTensorVariantToComponents*
T0
<
bIdentity$CompositeTensorVariantToComponents:1*
T0	"Ê