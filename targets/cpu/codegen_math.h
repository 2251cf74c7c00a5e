/* codegen_math.h: what functions are written out in: arithmetic on vectors, or on one number. Private to codegen_math*.c. */
#ifndef TFC_TARGETS_CPU_CODEGEN_MATH_H
#define TFC_TARGETS_CPU_CODEGEN_MATH_H

#include "targets/cpu/codegen.h"

#define B (c->b)

static inline value add(struct codegen *c, value a, value b) { return LLVMBuildFAdd(B, a, b, ""); }
static inline value sub(struct codegen *c, value a, value b) { return LLVMBuildFSub(B, a, b, ""); }
static inline value mul(struct codegen *c, value a, value b) { return LLVMBuildFMul(B, a, b, ""); }
static inline value select_if(struct codegen *c, value condition, value a, value b) { return LLVMBuildSelect(B, condition, a, b, ""); }
static inline value compare(struct codegen *c, LLVMRealPredicate p, value a, double k) {
  return LLVMBuildFCmp(B, p, a, const_like(a, k), "");
}
static inline value scale(struct codegen *c, value a, double k) { return mul(c, a, const_like(a, k)); }
/* a * b + d, in one rounding where that is allowed */
static inline value muladd(struct codegen *c, value a, value b, value d) {
  return c->m->has_fma ? call_intrinsic(c, "llvm.fma", LLVMTypeOf(a), (value[]){a, b, d}, 3) : add(c, mul(c, a, b), d);
}
static inline value polynomial(struct codegen *c, value x, const double *k, int count) {
  value sum = const_like(x, k[0]);
  for (int i = 1; i < count; i++)
    sum = muladd(c, sum, x, const_like(x, k[i]));
  return sum;
}
#define POLYNOMIAL(x, ...) polynomial(c, x, (const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

static inline LLVMTypeRef with_element(value like, LLVMTypeRef element) {
  return is_wide(like) ? LLVMVectorType(element, LLVMGetVectorSize(LLVMTypeOf(like))) : element;
}
static inline value absolute(struct codegen *c, value x) { return call_intrinsic(c, "llvm.fabs", LLVMTypeOf(x), &x, 1); }
static inline value copy_sign(struct codegen *c, value magnitude, value sign) {
  return call_intrinsic(c, "llvm.copysign", LLVMTypeOf(magnitude), (value[]){magnitude, sign}, 2);
}
/* Within the bounds; NaN stays. */
static inline value clamp(struct codegen *c, value x, double low, double high) {
  x = select_if(c, compare(c, LLVMRealOGT, x, high), const_like(x, high), x);
  return select_if(c, compare(c, LLVMRealOLT, x, low), const_like(x, low), x);
}

/* NaN below `zero`, -inf there, and x itself where it is infinite or NaN. */
static inline value log_specials(struct codegen *c, value x, double zero, value r) {
  r = select_if(c, compare(c, LLVMRealOEQ, x, zero), const_like(x, -__builtin_inf()), r);
  r = select_if(c, compare(c, LLVMRealOLT, x, zero), const_like(x, __builtin_nan("")), r);
  return select_if(c, compare(c, LLVMRealUGE, x, __builtin_inf()), x, r);
}

/* codegen_math_double.c */
value emit_double_math(struct codegen *c, enum scalar_op op, value x); /* NULL: there is none */

#endif
