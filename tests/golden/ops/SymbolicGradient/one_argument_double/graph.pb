
?
Abs_float64_x0Placeholder*
dtype0*
shape
:
/
Abs_float64/AbsAbsAbs_float64_x0*
T0
r
Abs_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
ˆ
Abs_float64/SymbolicGradientSymbolicGradientAbs_float64_x0Abs_float64/Const*
fR
Abs
T0*
Tout
2*
Tin
2
A
Abs_float64_d0IdentityAbs_float64/SymbolicGradient*
T0
?
Neg_float64_x0Placeholder*
dtype0*
shape
:
/
Neg_float64/NegNegNeg_float64_x0*
T0
r
Neg_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
ˆ
Neg_float64/SymbolicGradientSymbolicGradientNeg_float64_x0Neg_float64/Const*
fR
Neg
T0*
Tout
2*
Tin
2
A
Neg_float64_d0IdentityNeg_float64/SymbolicGradient*
T0
F
Reciprocal_float64_x0Placeholder*
dtype0*
shape
:
K
Reciprocal_float64/Reciprocal
ReciprocalReciprocal_float64_x0*
T0
y
Reciprocal_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
¤
#Reciprocal_float64/SymbolicGradientSymbolicGradientReciprocal_float64_x0Reciprocal_float64/Const*
fR

Reciprocal
T0*
Tout
2*
Tin
2
O
Reciprocal_float64_d0Identity#Reciprocal_float64/SymbolicGradient*
T0
B
Square_float64_x0Placeholder*
dtype0*
shape
:
;
Square_float64/SquareSquareSquare_float64_x0*
T0
u
Square_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
”
Square_float64/SymbolicGradientSymbolicGradientSquare_float64_x0Square_float64/Const*
fR
Square
T0*
Tout
2*
Tin
2
G
Square_float64_d0IdentitySquare_float64/SymbolicGradient*
T0
?
Exp_float64_x0Placeholder*
dtype0*
shape
:
/
Exp_float64/ExpExpExp_float64_x0*
T0
r
Exp_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
ˆ
Exp_float64/SymbolicGradientSymbolicGradientExp_float64_x0Exp_float64/Const*
fR
Exp
T0*
Tout
2*
Tin
2
A
Exp_float64_d0IdentityExp_float64/SymbolicGradient*
T0
A
Expm1_float64_x0Placeholder*
dtype0*
shape
:
7
Expm1_float64/Expm1Expm1Expm1_float64_x0*
T0
t
Expm1_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?

Expm1_float64/SymbolicGradientSymbolicGradientExpm1_float64_x0Expm1_float64/Const*
fR
Expm1
T0*
Tout
2*
Tin
2
E
Expm1_float64_d0IdentityExpm1_float64/SymbolicGradient*
T0
@
Sinh_float64_x0Placeholder*
dtype0*
shape
:
3
Sinh_float64/SinhSinhSinh_float64_x0*
T0
s
Sinh_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
Œ
Sinh_float64/SymbolicGradientSymbolicGradientSinh_float64_x0Sinh_float64/Const*
fR
Sinh
T0*
Tout
2*
Tin
2
C
Sinh_float64_d0IdentitySinh_float64/SymbolicGradient*
T0
@
Cosh_float64_x0Placeholder*
dtype0*
shape
:
3
Cosh_float64/CoshCoshCosh_float64_x0*
T0
s
Cosh_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
Œ
Cosh_float64/SymbolicGradientSymbolicGradientCosh_float64_x0Cosh_float64/Const*
fR
Cosh
T0*
Tout
2*
Tin
2
C
Cosh_float64_d0IdentityCosh_float64/SymbolicGradient*
T0
@
Tanh_float64_x0Placeholder*
dtype0*
shape
:
3
Tanh_float64/TanhTanhTanh_float64_x0*
T0
s
Tanh_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
Œ
Tanh_float64/SymbolicGradientSymbolicGradientTanh_float64_x0Tanh_float64/Const*
fR
Tanh
T0*
Tout
2*
Tin
2
C
Tanh_float64_d0IdentityTanh_float64/SymbolicGradient*
T0
A
Asinh_float64_x0Placeholder*
dtype0*
shape
:
7
Asinh_float64/AsinhAsinhAsinh_float64_x0*
T0
t
Asinh_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?

Asinh_float64/SymbolicGradientSymbolicGradientAsinh_float64_x0Asinh_float64/Const*
fR
Asinh
T0*
Tout
2*
Tin
2
E
Asinh_float64_d0IdentityAsinh_float64/SymbolicGradient*
T0
C
Sigmoid_float64_x0Placeholder*
dtype0*
shape
:
?
Sigmoid_float64/SigmoidSigmoidSigmoid_float64_x0*
T0
v
Sigmoid_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
˜
 Sigmoid_float64/SymbolicGradientSymbolicGradientSigmoid_float64_x0Sigmoid_float64/Const*
fR
Sigmoid
T0*
Tout
2*
Tin
2
I
Sigmoid_float64_d0Identity Sigmoid_float64/SymbolicGradient*
T0
@
Sign_float64_x0Placeholder*
dtype0*
shape
:
3
Sign_float64/SignSignSign_float64_x0*
T0
s
Sign_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
Œ
Sign_float64/SymbolicGradientSymbolicGradientSign_float64_x0Sign_float64/Const*
fR
Sign
T0*
Tout
2*
Tin
2
C
Sign_float64_d0IdentitySign_float64/SymbolicGradient*
T0
?
Sin_float64_x0Placeholder*
dtype0*
shape
:
/
Sin_float64/SinSinSin_float64_x0*
T0
r
Sin_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
ˆ
Sin_float64/SymbolicGradientSymbolicGradientSin_float64_x0Sin_float64/Const*
fR
Sin
T0*
Tout
2*
Tin
2
A
Sin_float64_d0IdentitySin_float64/SymbolicGradient*
T0
?
Cos_float64_x0Placeholder*
dtype0*
shape
:
/
Cos_float64/CosCosCos_float64_x0*
T0
r
Cos_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
ˆ
Cos_float64/SymbolicGradientSymbolicGradientCos_float64_x0Cos_float64/Const*
fR
Cos
T0*
Tout
2*
Tin
2
A
Cos_float64_d0IdentityCos_float64/SymbolicGradient*
T0
?
Tan_float64_x0Placeholder*
dtype0*
shape
:
/
Tan_float64/TanTanTan_float64_x0*
T0
r
Tan_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
ˆ
Tan_float64/SymbolicGradientSymbolicGradientTan_float64_x0Tan_float64/Const*
fR
Tan
T0*
Tout
2*
Tin
2
A
Tan_float64_d0IdentityTan_float64/SymbolicGradient*
T0
@
Atan_float64_x0Placeholder*
dtype0*
shape
:
3
Atan_float64/AtanAtanAtan_float64_x0*
T0
s
Atan_float64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
Œ
Atan_float64/SymbolicGradientSymbolicGradientAtan_float64_x0Atan_float64/Const*
fR
Atan
T0*
Tout
2*
Tin
2
C
Atan_float64_d0IdentityAtan_float64/SymbolicGradient*
T0
<
Sqrt_f64_x0Placeholder*
dtype0*
shape
:
+
Sqrt_f64/SqrtSqrtSqrt_f64_x0*
T0
o
Sqrt_f64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
€
Sqrt_f64/SymbolicGradientSymbolicGradientSqrt_f64_x0Sqrt_f64/Const*
fR
Sqrt
T0*
Tout
2*
Tin
2
;
Sqrt_f64_d0IdentitySqrt_f64/SymbolicGradient*
T0
=
Rsqrt_f64_x0Placeholder*
dtype0*
shape
:
/
Rsqrt_f64/RsqrtRsqrtRsqrt_f64_x0*
T0
p
Rsqrt_f64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
„
Rsqrt_f64/SymbolicGradientSymbolicGradientRsqrt_f64_x0Rsqrt_f64/Const*
fR
Rsqrt
T0*
Tout
2*
Tin
2
=
Rsqrt_f64_d0IdentityRsqrt_f64/SymbolicGradient*
T0
;

Log_f64_x0Placeholder*
dtype0*
shape
:
'
Log_f64/LogLog
Log_f64_x0*
T0
n
Log_f64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
|
Log_f64/SymbolicGradientSymbolicGradient
Log_f64_x0Log_f64/Const*
fR
Log
T0*
Tout
2*
Tin
2
9

Log_f64_d0IdentityLog_f64/SymbolicGradient*
T0
=
Log1p_f64_x0Placeholder*
dtype0*
shape
:
/
Log1p_f64/Log1pLog1pLog1p_f64_x0*
T0
p
Log1p_f64/ConstConst*
dtype0*I
value@B>"0ºýŽ'ÝÊñ¿4¦þº÷?Åò¿BçÕg…Êú?@}éß»§¿ð²ì>›Ü?
„
Log1p_f64/SymbolicGradientSymbolicGradientLog1p_f64_x0Log1p_f64/Const*
fR
Log1p
T0*
Tout
2*
Tin
2
=
Log1p_f64_d0IdentityLog1p_f64/SymbolicGradient*
T0"Ê