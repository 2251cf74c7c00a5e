/* formula.h: scalar formulas over elements that may be complex, as op rows write them.
 *
 * A formula is ordinary C made of these calls; the short upper-case names that ops.def uses are macros for them
 * (formula_words.h). Elements are pairs of expressions; the imaginary one is NO_EXPR for real dtypes. C leaves the order of
 * evaluating arguments open: nothing may depend on the numbers of expressions (the printer numbers them by a walk). */
#ifndef TFC_IR_KERNEL_FORMULA_H
#define TFC_IR_KERNEL_FORMULA_H

#include "ir/kernel/kernel.h"

struct element {
  expr_id re, im;
};
struct formula {
  struct kernel *kernel;
  enum dtype dtype; /* of constants: that of the op's first input; may be complex */
};

static inline struct element real_element(expr_id e) { return (struct element){e, NO_EXPR}; }
enum dtype element_dtype(const struct formula *f, struct element x); /* of the (real) parts */

struct element f_const(struct formula *f, double value);                      /* in the formula's dtype */
struct element f_const_as(struct formula *f, enum dtype dtype, double value); /* real or complex */
struct element f_const_like(struct formula *f, struct element like, double value);
struct element f_lowest(struct formula *f); /* the smallest value: -inf of floats */
struct element f_highest(struct formula *f);
struct element f_nan(struct formula *f);
struct element f_unary(struct formula *f, enum scalar_op op, struct element a);
struct element f_binary(struct formula *f, enum scalar_op op, struct element a, struct element b);
struct element f_select(struct formula *f, struct element condition, struct element a, struct element b);
struct element f_cast(struct formula *f, enum dtype dtype, struct element a); /* dtype may be complex */
struct element f_complex(struct formula *f, struct element re, struct element im);
struct element f_real(struct element a);
struct element f_imag(struct formula *f, struct element a);
struct element f_conj(struct formula *f, struct element a);
struct element f_norm(struct formula *f, struct element a); /* |a|, of complex numbers without overflow */
/* A polynomial by Horner's rule, highest coefficient first. */
struct element f_poly(struct formula *f, struct element x, int count, const double *coefficients);
/* A Chebyshev series at t in [-1,1], lowest coefficient first (whole, not halved). */
struct element f_chebyshev(struct formula *f, struct element t, int count, const double *coefficients);

struct element f_sigmoid(struct formula *f, struct element a);
struct element f_softplus(struct formula *f, struct element a);
struct element f_sign(struct formula *f, struct element a);
struct element f_rsqrt(struct formula *f, struct element a);
struct element f_pow(struct formula *f, struct element a, struct element b);
struct element f_ndtri(struct formula *f, struct element a);
struct element f_erfinv(struct formula *f, struct element a);
struct element f_digamma(struct formula *f, struct element a);
struct element f_bessel_i0(struct formula *f, struct element a);
struct element f_bessel_i1(struct formula *f, struct element a);
struct element f_bessel_i0e(struct formula *f, struct element a);
struct element f_bessel_i1e(struct formula *f, struct element a);
struct element f_bessel_j0(struct formula *f, struct element a);
struct element f_bessel_j1(struct formula *f, struct element a);
struct element f_bessel_y0(struct formula *f, struct element a);
struct element f_bessel_y1(struct formula *f, struct element a);
struct element f_bessel_k0(struct formula *f, struct element a);
struct element f_bessel_k1(struct formula *f, struct element a);
struct element f_bessel_k0e(struct formula *f, struct element a);
struct element f_bessel_k1e(struct formula *f, struct element a);
struct element f_dawson(struct formula *f, struct element a);
struct element f_exponential_integral(struct formula *f, struct element a);
struct element f_fresnel_cos(struct formula *f, struct element a);
struct element f_fresnel_sin(struct formula *f, struct element a);
struct element f_spence(struct formula *f, struct element a);

#endif
