/* fourier_roots.h: the constants of Fourier transforms: roots of unity, and other numbers computed in double. Private to ir/ops/math. */
#ifndef TFC_IR_OPS_MATH_FOURIER_ROOTS_H
#define TFC_IR_OPS_MATH_FOURIER_ROOTS_H

#include "ir/lower/lower.h"

/* Numbers in double, rounded to a constant vector of floats or doubles as they stand, or taken for complex numbers. */
struct numbers {
  struct op_call *c;
  enum dtype complex;
  double *of;
  int64_t count;
};
struct numbers numbers_begin(struct op_call *c, enum dtype complex, int64_t count);
/* in_parts: a vector of `count` real numbers; else of half as many complex ones */
value_id numbers_end(const struct numbers *n, bool in_parts);

/* e^(-2 pi i k / n) (`inverse`: e^(2 pi i k / n)) */
void fourier_root_of(double *re, double *im, int64_t k, int64_t n, bool inverse);
/* Whether a table of so many is too large for a constant. */
bool fourier_is_large(enum dtype complex, int64_t count);

/* Such roots for k in [0, count), as constants; where one would be large, products of an element of each of two. */
struct fourier_roots {
  value_id low, high; /* high: of the multiples of `step`; NO_VALUE: all are in low */
  int64_t step;
  uint32_t low_buffer, high_buffer; /* of the kernel that they were last put in */
};
struct fourier_roots fourier_roots(struct op_call *c, enum dtype complex, int64_t n, int64_t count, bool inverse);
void fourier_roots_in(struct kb *kb, struct fourier_roots *r);
struct element fourier_root(struct kb *kb, const struct fourier_roots *r, expr_id k);

#endif
