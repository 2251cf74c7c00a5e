/* codegen_math.c: float32 functions written out as arithmetic, without branches, so that they run in vectors.
 *
 * Each reduces its argument to a small interval and ends in a polynomial or rational whose coefficients are the classical
 * ones for single precision (Cephes, Sun). Special values are put in by selects: NaN, infinities and signed zeros come out as
 * libm has them (but for --math fast). Integers are taken out of floats by adding 1.5 * 2^23 and looking at the bits: unlike a conversion
 * that is defined for NaN too. Errors are below 2 ulp; tests/targets/test_cpu_math.c measures them. */
#include "targets/cpu/codegen_math.h"

#define ROUNDER 12582912.0 /* 1.5 * 2^23 */
#define ROUNDER_BITS 0x4b400000

static value bits_of(struct codegen *c, value v) { return LLVMBuildBitCast(B, v, with_element(v, c->m->i32), ""); }
static value float_from_bits(struct codegen *c, value v) { return LLVMBuildBitCast(B, v, with_element(v, c->m->f32), ""); }
/* 2^n for -126 <= n <= 127 */
static value power_of_two(struct codegen *c, value n) {
  value biased = LLVMBuildAdd(B, n, const_int_like(n, 127), "");
  return float_from_bits(c, LLVMBuildShl(B, biased, const_int_like(n, 23), ""));
}
/* x = n ln 2 + r, |r| <= ln 2 / 2; returns exp(r) - 1 */
static value reduce_exponent(struct codegen *c, value x, value *n) {
  value t = muladd(c, x, const_like(x, 1.44269504088896341), const_like(x, ROUNDER));
  value whole = sub(c, t, const_like(x, ROUNDER));
  value r = muladd(c, whole, const_like(x, -0x1.62e4p-1), x);
  r = muladd(c, whole, const_like(x, -0x1.7f7d1cp-20), r);
  value bits = bits_of(c, t);
  *n = LLVMBuildSub(B, bits, const_int_like(bits, ROUNDER_BITS), "");
  value p = POLYNOMIAL(r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1);
  return muladd(c, mul(c, r, r), p, r);
}
/* --math fast: never 0 nor infinite. */
static value short_exp(struct codegen *c, value x) {
  value n, y = reduce_exponent(c, clamp(c, x, -87.3365, 88.3762), &n), power = power_of_two(c, n);
  return muladd(c, power, y, power);
}
static value emit_exp(struct codegen *c, value x) {
  if (c->m->math == MATH_FAST)
    return short_exp(c, x);
  value n, y = reduce_exponent(c, clamp(c, x, -104, 104), &n);
  y = add(c, y, const_like(y, 1));
  value half = LLVMBuildAShr(B, n, const_int_like(n, 1), ""); /* in two steps: 2^n alone may not be a float */
  return mul(c, mul(c, y, power_of_two(c, half)), power_of_two(c, LLVMBuildSub(B, n, half, "")));
}
static value emit_expm1(struct codegen *c, value x) {
  value n, y = reduce_exponent(c, clamp(c, x, -80, 80), &n), power = power_of_two(c, n);
  value r = muladd(c, power, y, sub(c, power, const_like(x, 1)));
  r = select_if(c, compare(c, LLVMRealOGT, x, 60), emit_exp(c, x), r);
  return select_if(c, compare(c, LLVMRealOEQ, x, 0), x, r);
}

/* log of a positive normal number: x = 2^k m with m near 1 */
static value positive_log(struct codegen *c, value x) {
  value bits = bits_of(c, x);
  value shifted = LLVMBuildAdd(B, bits, const_int_like(bits, 0x3f800000 - 0x3f3504f3), "");
  value exponent = LLVMBuildSub(B, LLVMBuildAShr(B, shifted, const_int_like(bits, 23), ""), const_int_like(bits, 127), "");
  value k = LLVMBuildSIToFP(B, exponent, LLVMTypeOf(x), "");
  value mantissa = LLVMBuildAnd(B, shifted, const_int_like(bits, 0x7fffff), "");
  value m = float_from_bits(c, LLVMBuildAdd(B, mantissa, const_int_like(bits, 0x3f3504f3), ""));
  value f = sub(c, m, const_like(x, 1));
  value s = LLVMBuildFDiv(B, f, add(c, f, const_like(x, 2)), ""), z = mul(c, s, s);
  value series = mul(c, z, POLYNOMIAL(z, 0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693));
  value square = scale(c, mul(c, f, f), 0.5);
  value low = muladd(c, k, const_like(x, 9.0580006145e-06), mul(c, s, add(c, square, series)));
  return muladd(c, k, const_like(x, 6.9313812256e-01), add(c, sub(c, low, square), f));
}
static value emit_log(struct codegen *c, value x) { return log_specials(c, x, 0, positive_log(c, x)); }

/* log(1 + x) from u = 1 + x as rounded, with what the rounding lost. */
static value emit_log1p(struct codegen *c, value x) {
  value u = add(c, x, const_like(x, 1)), lost = sub(c, x, sub(c, u, const_like(x, 1)));
  value r = add(c, positive_log(c, u), LLVMBuildFDiv(B, lost, u, ""));
  r = log_specials(c, x, -1, r);
  return select_if(c, compare(c, LLVMRealOEQ, x, 0), x, r);
}

/* --math fast: a rational in x^2 up to where tanh is 1 in single precision. */
static value short_tanh(struct codegen *c, value x) {
  value a = clamp(c, x, -7.90531110763549805, 7.90531110763549805), z = mul(c, a, a);
  value p = POLYNOMIAL(z, -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
                       6.37261928875436e-04, 4.89352455891786e-03);
  value q = POLYNOMIAL(z, 1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03);
  return LLVMBuildFDiv(B, mul(c, a, p), q, "");
}
static value emit_tanh(struct codegen *c, value x) {
  if (c->m->math == MATH_FAST)
    return short_tanh(c, x);
  value a = absolute(c, x), z = mul(c, x, x);
  value p = POLYNOMIAL(z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1);
  value near = muladd(c, mul(c, p, z), x, x);
  value e = add(c, emit_exp(c, add(c, a, a)), const_like(x, 1));
  value far = sub(c, const_like(x, 1), LLVMBuildFDiv(B, const_like(x, 2), e, ""));
  value r = select_if(c, compare(c, LLVMRealOLT, a, 0.625), near, copy_sign(c, far, x));
  return select_if(c, compare(c, LLVMRealOEQ, x, 0), x, r);
}

/* A rational in x^2 up to where erf is 1 in single precision. */
static value emit_erf(struct codegen *c, value x) {
  value a = clamp(c, x, -3.832506856900711, 3.832506856900711), z = mul(c, a, a);
  value p = POLYNOMIAL(z, 0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084);
  value q = POLYNOMIAL(z, -1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667, 0.11098505178285362,
                       0.49746925110067538, 1.0);
  value r = LLVMBuildFDiv(B, mul(c, a, p), q, "");
  r = select_if(c, compare(c, LLVMRealOGT, absolute(c, x), 3.8325068), copy_sign(c, const_like(x, 1), x), r);
  return select_if(c, compare(c, LLVMRealOEQ, x, 0), x, r);
}

/* ---- sine, cosine, tangent: reduced and evaluated in double, which is exact enough up to 10^6 ---- */

#define TRIG_LIMIT 1e6

/* x = n pi/2 + r in double; n's low bits as i64. pi/2 is cut so that its first parts times n are exact. */
static value reduce_angle(struct codegen *c, value x, value *n) {
  value t = add(c, scale(c, x, 0.63661977236758134), const_like(x, 0x1.8p52)), whole = sub(c, t, const_like(x, 0x1.8p52));
  value r = muladd(c, whole, const_like(x, -1.57079632673412561417e+00), x);
  r = muladd(c, whole, const_like(x, -6.07710050630396597660e-11), r);
  r = muladd(c, whole, const_like(x, -2.02226624879595063154e-21), r);
  *n = LLVMBuildBitCast(B, t, with_element(t, c->m->i64), "");
  return r;
}
static value odd_bit(struct codegen *c, value n, int64_t bit) {
  return LLVMBuildICmp(B, LLVMIntNE, LLVMBuildAnd(B, n, const_int_like(n, bit), ""), const_int_like(n, 0), "");
}
static value negated_if(struct codegen *c, value condition, value v) { return select_if(c, condition, LLVMBuildFNeg(B, v, ""), v); }

static value small_angle(struct codegen *c, enum scalar_op op, value x) {
  value wide = LLVMBuildFPExt(B, x, with_element(x, c->m->f64), ""), n, r = reduce_angle(c, wide, &n), z = mul(c, r, r);
  value sine = muladd(c, mul(c, r, z),
                      POLYNOMIAL(z, -2.50507602534068634195e-08, 2.75573136213857245213e-06, -1.98412698295895385996e-04,
                                 8.33333332211858878094e-03, -1.66666666666666307295e-01),
                      r);
  value cosine = muladd(
    c, z,
    POLYNOMIAL(z, -2.75573143513906633035e-07, 2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02, -0.5),
    const_like(z, 1));
  value odd = odd_bit(c, n, 1), result;
  if (op == SCALAR_TAN) {
    value top = select_if(c, odd, LLVMBuildFNeg(B, cosine, ""), sine), bottom = select_if(c, odd, sine, cosine);
    result = LLVMBuildFDiv(B, top, bottom, "");
  } else if (op == SCALAR_SIN) {
    result = negated_if(c, odd_bit(c, n, 2), select_if(c, odd, cosine, sine));
  } else {
    value next = LLVMBuildAdd(B, n, const_int_like(n, 1), "");
    result = negated_if(c, odd_bit(c, next, 2), select_if(c, odd, sine, cosine));
  }
  result = LLVMBuildFPTrunc(B, result, LLVMTypeOf(x), "");
  return op == SCALAR_COS ? result : select_if(c, compare(c, LLVMRealOEQ, x, 0), x, result);
}

/* Where an angle is larger (or infinite) libm is asked: the one branch in this file, hardly ever taken. An element's result does not
 * depend on its neighbours. */
static value emit_angle(struct codegen *c, enum scalar_op op, value x) {
  value is_large = compare(c, LLVMRealOGT, absolute(c, x), TRIG_LIMIT);
  value large = is_wide(x) ? call_intrinsic(c, "llvm.vector.reduce.or", LLVMTypeOf(is_large), &is_large, 1) : is_large;
  LLVMBasicBlockRef blocks[2] = {new_block(c, "small"), new_block(c, "large")}, done = new_block(c, "angle");
  value results[2];
  LLVMBuildCondBr(B, large, blocks[1], blocks[0]);
  for (int i = 0; i < 2; i++) {
    LLVMPositionBuilderAtEnd(B, blocks[i]);
    results[i] = small_angle(c, op, x);
    if (i)
      results[i] = select_if(c, is_large, call_libm(c, scalar_text(op), &x, 1), results[i]);
    blocks[i] = LLVMGetInsertBlock(B);
    LLVMBuildBr(B, done);
  }
  LLVMPositionBuilderAtEnd(B, done);
  value result = LLVMBuildPhi(B, LLVMTypeOf(x), "");
  LLVMAddIncoming(result, results, blocks, 2);
  return result;
}

/* ---- the functions that give angles ---- */

#define HALF_PI 0x1.921fb6p+0
#define HALF_PI_REST -0x1.777a5cp-25 /* what is missing in single precision; of pi twice that */

/* atan(top / bottom), 0 <= top <= bottom: from 0, or from pi/4 by the difference of the angles. One division either way. */
static value atan_of_ratio(struct codegen *c, value top, value bottom) {
  value far = LLVMBuildFCmp(B, LLVMRealOGT, top, scale(c, bottom, 0.41421356237309505), "");
  value z = LLVMBuildFDiv(B, select_if(c, far, sub(c, top, bottom), top), select_if(c, far, add(c, top, bottom), bottom), "");
  value square = mul(c, z, z);
  value p = POLYNOMIAL(square, 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1);
  value rest = select_if(c, far, const_like(z, HALF_PI_REST / 2), const_like(z, 0)), r = add(c, muladd(c, mul(c, p, square), z, rest), z);
  return add(c, select_if(c, far, const_like(z, HALF_PI / 2), const_like(z, 0)), r);
}
static value emit_atan(struct codegen *c, value x) {
  value a = absolute(c, x), is_steep = compare(c, LLVMRealOGT, a, 1), one = const_like(x, 1);
  value inverse = LLVMBuildFDiv(B, one, a, ""); /* infinite where it is not taken */
  value r = atan_of_ratio(c, select_if(c, is_steep, inverse, a), one);
  value steep = sub(c, const_like(x, HALF_PI), sub(c, r, const_like(x, HALF_PI_REST)));
  return copy_sign(c, select_if(c, is_steep, steep, r), x);
}
static value emit_atan2(struct codegen *c, value y, value x) {
  value a = absolute(c, x), b = absolute(c, y), is_steep = LLVMBuildFCmp(B, LLVMRealOGT, b, a, "");
  value most = select_if(c, is_steep, b, a), least = select_if(c, is_steep, a, b), one = const_like(x, 1);
  value is_zero = compare(c, LLVMRealOEQ, most, 0), is_same = LLVMBuildFCmp(B, LLVMRealOEQ, most, least, ""); /* both infinite, too */
  value shrink = select_if(c, compare(c, LLVMRealOGT, most, 0x1p100), const_like(x, 0.25), one);
  value bottom = select_if(c, LLVMBuildOr(B, is_zero, is_same, ""), one, mul(c, most, shrink));
  value top = select_if(c, is_zero, const_like(x, 0), select_if(c, is_same, one, mul(c, least, shrink)));
  value r = atan_of_ratio(c, top, bottom);
  r = select_if(c, is_steep, sub(c, const_like(x, HALF_PI), sub(c, r, const_like(x, HALF_PI_REST))), r);
  value sign = bits_of(c, x), is_left = LLVMBuildICmp(B, LLVMIntSLT, sign, const_int_like(sign, 0), "");
  r = select_if(c, is_left, sub(c, const_like(x, 2 * HALF_PI), sub(c, r, const_like(x, 2 * HALF_PI_REST))), r);
  value none = LLVMBuildFCmp(B, LLVMRealUNO, x, y, "");
  return select_if(c, none, add(c, x, y), copy_sign(c, r, y));
}

/* asin(s) of s^2 = z <= 1/4 */
static value short_asin(struct codegen *c, value s, value z) {
  value p = POLYNOMIAL(z, 4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1);
  return muladd(c, mul(c, p, z), s, s);
}
/* Beyond 1/2 by the half angle. */
static value emit_asin(struct codegen *c, value x) {
  value a = absolute(c, x), is_far = compare(c, LLVMRealOGT, a, 0.5), half = scale(c, sub(c, const_like(x, 1), a), 0.5);
  value root = call_intrinsic(c, "llvm.sqrt", LLVMTypeOf(x), &half, 1);
  value r = short_asin(c, select_if(c, is_far, root, a), select_if(c, is_far, half, mul(c, a, a)));
  value far = sub(c, const_like(x, HALF_PI), sub(c, add(c, r, r), const_like(x, HALF_PI_REST)));
  return copy_sign(c, select_if(c, is_far, far, r), x);
}
static value emit_acos(struct codegen *c, value x) {
  value a = absolute(c, x), is_far = compare(c, LLVMRealOGT, a, 0.5), half = scale(c, sub(c, const_like(x, 1), a), 0.5);
  value root = call_intrinsic(c, "llvm.sqrt", LLVMTypeOf(x), &half, 1), is_left = compare(c, LLVMRealOLT, x, 0);
  value r = short_asin(c, select_if(c, is_far, root, x), select_if(c, is_far, half, mul(c, x, x)));
  value near = sub(c, const_like(x, HALF_PI), sub(c, r, const_like(x, HALF_PI_REST))), twice = add(c, r, r);
  value left = sub(c, const_like(x, 2 * HALF_PI), sub(c, twice, const_like(x, 2 * HALF_PI_REST)));
  return select_if(c, is_far, select_if(c, is_left, left, twice), near);
}

/* From e^|x| - 1; from e^(|x| / 2) where e^|x| may not be a float. */
static value emit_hyperbolic(struct codegen *c, enum scalar_op op, value x) {
  value a = absolute(c, x), one = const_like(x, 1), grown = emit_exp(c, scale(c, a, 0.5)), far = mul(c, scale(c, grown, 0.5), grown);
  value is_far = compare(c, LLVMRealOGT, a, 80), r;
  if (op == SCALAR_COSH) {
    value e = emit_exp(c, a);
    r = scale(c, add(c, e, LLVMBuildFDiv(B, one, e, "")), 0.5);
    return select_if(c, is_far, far, r);
  }
  value e = emit_expm1(c, a);
  r = scale(c, add(c, e, LLVMBuildFDiv(B, e, add(c, e, one), "")), 0.5);
  return copy_sign(c, select_if(c, is_far, far, r), x);
}
/* log(1 + y) for what 1 + y must be; of large arguments by their own logarithm. */
static value emit_inverse_hyperbolic(struct codegen *c, enum scalar_op op, value x) {
  value a = absolute(c, x), one = const_like(x, 1);
  if (op == SCALAR_ATANH)
    return copy_sign(c, scale(c, emit_log1p(c, LLVMBuildFDiv(B, add(c, a, a), sub(c, one, a), "")), 0.5), x);
  value is_far = compare(c, LLVMRealOGT, a, 0x1p14),
        far = add(c, emit_log(c, op == SCALAR_ACOSH ? x : a), const_like(x, 0.69314718055994531));
  if (op == SCALAR_ACOSH) {
    value t = sub(c, x, one), inside = mul(c, t, add(c, t, const_like(x, 2)));
    value near = emit_log1p(c, add(c, t, call_intrinsic(c, "llvm.sqrt", LLVMTypeOf(x), &inside, 1)));
    return select_if(c, compare(c, LLVMRealOLT, x, 1), const_like(x, __builtin_nan("")), select_if(c, is_far, far, near));
  }
  value square = mul(c, a, a), root = add(c, square, one);
  root = add(c, call_intrinsic(c, "llvm.sqrt", LLVMTypeOf(x), &root, 1), one);
  value near = emit_log1p(c, add(c, a, LLVMBuildFDiv(B, square, root, "")));
  return copy_sign(c, select_if(c, is_far, far, near), x);
}

bool has_math(const struct codegen *c, enum scalar_op op, enum dtype dtype) {
  bool is_kept = dtype == DTYPE_DOUBLE && c->m->math == MATH_STRICT;
  return dtype_is_float(dtype) && !is_kept && op_is_written_out(op, dtype);
}

value emit_math(struct codegen *c, enum scalar_op op, value *v) {
  LLVMTypeRef type = LLVMTypeOf(v[0]), element = is_wide(v[0]) ? LLVMGetElementType(type) : type;
  if (element == c->m->f64)
    return has_math(c, op, DTYPE_DOUBLE) ? emit_double_math(c, op, v[0]) : NULL;
  if (element != c->m->f32)
    return NULL;
  switch (op) {
  case SCALAR_EXP: return emit_exp(c, v[0]);
  case SCALAR_EXPM1: return emit_expm1(c, v[0]);
  case SCALAR_LOG: return emit_log(c, v[0]);
  case SCALAR_LOG1P: return emit_log1p(c, v[0]);
  case SCALAR_TANH: return emit_tanh(c, v[0]);
  case SCALAR_ERF: return emit_erf(c, v[0]);
  case SCALAR_SIN:
  case SCALAR_COS:
  case SCALAR_TAN: return emit_angle(c, op, v[0]);
  case SCALAR_ASIN: return emit_asin(c, v[0]);
  case SCALAR_ACOS: return emit_acos(c, v[0]);
  case SCALAR_ATAN: return emit_atan(c, v[0]);
  case SCALAR_ATAN2: return emit_atan2(c, v[0], v[1]);
  case SCALAR_SINH:
  case SCALAR_COSH: return emit_hyperbolic(c, op, v[0]);
  case SCALAR_ASINH:
  case SCALAR_ACOSH:
  case SCALAR_ATANH: return emit_inverse_hyperbolic(c, op, v[0]);
  default: return NULL;
  }
}
