/* codegen_math_double.c: float64 functions written out as arithmetic, as codegen_math.c does those of float32; --math strict keeps libm's,
 * which take one number after the other. Coefficients of log are Sun's (fdlibm), those of tanh Cephes', those of exp Taylor's: on so short
 * an interval the first that is left out is below 2^-57. Errors are below 2 ulp; tests/targets/test_cpu_math.c measures them. */
#include "targets/cpu/codegen_math.h"

#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52 */
#define ROUNDER_BITS 0x4338000000000000
#define ROOT_HALF_BITS 0x3fe6a09e667f3bcd
#define ONE_BITS 0x3ff0000000000000
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

static value bits_of(struct codegen *c, value v) { return LLVMBuildBitCast(B, v, with_element(v, c->m->i64), ""); }
static value double_from_bits(struct codegen *c, value v) { return LLVMBuildBitCast(B, v, with_element(v, c->m->f64), ""); }
/* 2^n for -1022 <= n <= 1023 */
static value power_of_two(struct codegen *c, value n) {
  value biased = LLVMBuildAdd(B, n, const_int_like(n, 1023), "");
  return double_from_bits(c, LLVMBuildShl(B, biased, const_int_like(n, 52), ""));
}

/* x = n ln 2 + r, |r| <= ln 2 / 2; e^r times 2^n in two steps: 2^n alone may not be a double */
static value emit_exp(struct codegen *c, value x) {
  x = clamp(c, x, -760, 760);
  value t = muladd(c, x, const_like(x, 1.44269504088896341), const_like(x, ROUNDER));
  value whole = sub(c, t, const_like(x, ROUNDER));
  value r = muladd(c, whole, const_like(x, -LN2_HIGH), x);
  r = muladd(c, whole, const_like(x, -LN2_LOW), r);
  value p = POLYNOMIAL(r, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                       1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5);
  value y = add(c, muladd(c, mul(c, r, r), p, r), const_like(x, 1));
  value bits = bits_of(c, t), n = LLVMBuildSub(B, bits, const_int_like(bits, ROUNDER_BITS), "");
  value half = LLVMBuildAShr(B, n, const_int_like(n, 1), "");
  return mul(c, mul(c, y, power_of_two(c, half)), power_of_two(c, LLVMBuildSub(B, n, half, "")));
}

/* log of a positive number: x = 2^k m with m near 1; s = f / (2 + f) for f = m - 1 */
static value positive_log(struct codegen *c, value x) {
  value tiny = compare(c, LLVMRealOLT, x, 0x1p-1022);
  value bits = bits_of(c, select_if(c, tiny, scale(c, x, 0x1p54), x));
  value shifted = LLVMBuildAdd(B, bits, const_int_like(bits, ONE_BITS - ROOT_HALF_BITS), "");
  value exponent = LLVMBuildSub(B, LLVMBuildAShr(B, shifted, const_int_like(bits, 52), ""), const_int_like(bits, 1023), "");
  exponent = LLVMBuildTrunc(B, exponent, with_element(x, c->m->i32), "");
  value k = LLVMBuildSIToFP(B, exponent, LLVMTypeOf(x), "");
  k = sub(c, k, select_if(c, tiny, const_like(x, 54), const_like(x, 0)));
  value mantissa = LLVMBuildAnd(B, shifted, const_int_like(bits, 0xfffffffffffff), "");
  value f = sub(c, double_from_bits(c, LLVMBuildAdd(B, mantissa, const_int_like(bits, ROOT_HALF_BITS), "")), const_like(x, 1));
  value s = LLVMBuildFDiv(B, f, add(c, f, const_like(x, 2)), ""), z = mul(c, s, s);
  value series = mul(c, z,
                     POLYNOMIAL(z, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
                                2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01));
  value square = scale(c, mul(c, f, f), 0.5);
  value low = muladd(c, k, const_like(x, LN2_LOW), mul(c, s, add(c, square, series)));
  return muladd(c, k, const_like(x, LN2_HIGH), add(c, sub(c, low, square), f));
}
static value emit_log(struct codegen *c, value x) { return log_specials(c, x, 0, positive_log(c, x)); }

/* A rational in x^2 near 0; 1 - 2 / (e^2|x| + 1) elsewhere. */
static value emit_tanh(struct codegen *c, value x) {
  value a = absolute(c, x), z = mul(c, x, x);
  value top = POLYNOMIAL(z, -9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3);
  value bottom = POLYNOMIAL(z, 1, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3);
  value near = muladd(c, mul(c, z, LLVMBuildFDiv(B, top, bottom, "")), x, x);
  value e = add(c, emit_exp(c, add(c, a, a)), const_like(x, 1));
  value far = sub(c, const_like(x, 1), LLVMBuildFDiv(B, const_like(x, 2), e, ""));
  value r = select_if(c, compare(c, LLVMRealOLT, a, 0.625), near, copy_sign(c, far, x));
  return select_if(c, compare(c, LLVMRealOEQ, x, 0), x, r);
}

value emit_double_math(struct codegen *c, enum scalar_op op, value x) {
  switch (op) {
  case SCALAR_EXP: return emit_exp(c, x);
  case SCALAR_LOG: return emit_log(c, x);
  case SCALAR_TANH: return emit_tanh(c, x);
  default: return NULL;
  }
}
