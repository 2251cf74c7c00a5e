/* formula_wide.h: what special functions are written in: arithmetic in double, series, and the way to the formula's dtype and back. Private
 * to ir/formula_*.c. */
#ifndef TFC_IR_KERNEL_FORMULA_WIDE_H
#define TFC_IR_KERNEL_FORMULA_WIDE_H

#include "ir/kernel/formula.h"

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
#define SERIES(t, table) f_chebyshev(f, t, COUNT(table), table)
#define POLYNOMIAL(x, table) f_poly(f, x, COUNT(table), table)

static inline struct element num(struct formula *f, double v) { return f_const_as(f, DTYPE_DOUBLE, v); }
static inline struct element add(struct formula *f, struct element a, struct element b) { return f_binary(f, SCALAR_ADD, a, b); }
static inline struct element sub(struct formula *f, struct element a, struct element b) { return f_binary(f, SCALAR_SUB, a, b); }
static inline struct element mul(struct formula *f, struct element a, struct element b) { return f_binary(f, SCALAR_MUL, a, b); }
static inline struct element divide(struct formula *f, struct element a, struct element b) { return f_binary(f, SCALAR_DIV, a, b); }
static inline struct element less(struct formula *f, struct element a, struct element b) { return f_binary(f, SCALAR_LT, a, b); }
static inline struct element un(struct formula *f, enum scalar_op op, struct element a) { return f_unary(f, op, a); }
static inline struct element wide(struct formula *f, struct element a) { return f_cast(f, DTYPE_DOUBLE, a); }
static inline struct element narrow(struct formula *f, struct element like, struct element a) {
  return f_cast(f, element_dtype(f, like), a);
}
/* The value of an odd function from that of |x|. */
static inline struct element odd(struct formula *f, struct element x, struct element value) {
  return f_select(f, less(f, x, num(f, 0)), un(f, SCALAR_NEG, value), value);
}

#endif
