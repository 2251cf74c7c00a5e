/* formula.c: scalar formulas, real and complex. Complex functions follow the usual identities in terms of real ones. */
#include "ir/kernel/formula.h"

#include <assert.h>
#include <math.h>

static expr_id un(struct formula *f, enum scalar_op op, expr_id a) { return expr_unary(f->kernel, op, a); }
static expr_id bin(struct formula *f, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(f->kernel, op, a, b); }
#define ADD_(x, y) bin(f, SCALAR_ADD, x, y)
#define SUB_(x, y) bin(f, SCALAR_SUB, x, y)
#define MUL_(x, y) bin(f, SCALAR_MUL, x, y)
#define DIV_(x, y) bin(f, SCALAR_DIV, x, y)

enum dtype element_dtype(const struct formula *f, struct element x) { return expr_get(f->kernel, x.re)->dtype; }

static expr_id number(struct formula *f, enum dtype dtype, double value) {
  return dtype_is_float(dtype) ? expr_float(f->kernel, dtype, value) : expr_int(f->kernel, dtype, (int64_t)value);
}
struct element f_const_as(struct formula *f, enum dtype dtype, double value) {
  enum dtype part = dtype_real(dtype);
  return (struct element){number(f, part, value), dtype_is_complex(dtype) ? number(f, part, 0) : NO_EXPR};
}
struct element f_const(struct formula *f, double value) {
  return f_const_as(f, f->dtype, value);
}
struct element f_const_like(struct formula *f, struct element like, double value) {
  enum dtype part = element_dtype(f, like);
  return (struct element){number(f, part, value), like.im ? number(f, part, 0) : NO_EXPR};
}

static int64_t integer_limit(enum dtype dtype, bool highest) {
  int bits = (int)dtype_size(dtype) * 8;
  if (dtype == DTYPE_BOOL)
    return highest;
  if (dtype_is_unsigned(dtype))
    return highest ? (bits == 64 ? -1 : (INT64_C(1) << bits) - 1) : 0;
  int64_t top = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
  return highest ? top : -top - 1;
}
static struct element limit(struct formula *f, bool highest) {
  enum dtype d = f->dtype;
  if (dtype_is_float(d))
    return real_element(expr_float(f->kernel, d, highest ? INFINITY : -INFINITY));
  return real_element(expr_bits(f->kernel, d, integer_limit(d, highest)));
}
struct element f_lowest(struct formula *f) {
  return limit(f, false);
}
struct element f_highest(struct formula *f) {
  return limit(f, true);
}
struct element f_nan(struct formula *f) {
  return f_const(f, NAN);
}

struct element f_complex(struct formula *f, struct element re, struct element im) {
  (void)f;
  return (struct element){re.re, im.re};
}
struct element f_real(struct element a) {
  return real_element(a.re);
}
struct element f_imag(struct formula *f, struct element a) {
  return real_element(a.im ? a.im : number(f, element_dtype(f, a), 0));
}
struct element f_conj(struct formula *f, struct element a) {
  return a.im ? (struct element){a.re, un(f, SCALAR_NEG, a.im)} : a;
}

/* |a| as hypot: scaled by the larger part so that squares do not overflow. */
struct element f_norm(struct formula *f, struct element a) {
  if (!a.im)
    return real_element(un(f, SCALAR_ABS, a.re));
  enum dtype d = element_dtype(f, a);
  expr_id x = un(f, SCALAR_ABS, a.re), y = un(f, SCALAR_ABS, a.im);
  expr_id big = bin(f, SCALAR_MAX, x, y), small = bin(f, SCALAR_MIN, x, y);
  expr_id zero = number(f, d, 0), is_zero = bin(f, SCALAR_EQ, big, zero);
  expr_id ratio = DIV_(small, expr_select(f->kernel, is_zero, number(f, d, 1), big));
  expr_id scaled = MUL_(big, un(f, SCALAR_SQRT, ADD_(number(f, d, 1), MUL_(ratio, ratio))));
  expr_id infinite = bin(f, SCALAR_EQ, big, number(f, d, INFINITY));
  return real_element(expr_select(f->kernel, infinite, big, scaled));
}

static struct element complex_mul(struct formula *f, struct element a, struct element b) {
  return (struct element){SUB_(MUL_(a.re, b.re), MUL_(a.im, b.im)), ADD_(MUL_(a.re, b.im), MUL_(a.im, b.re))};
}
/* The divisor is scaled by its larger part, so that its square neither overflows nor vanishes; by 0 and by infinity it is NaN,
 * as TensorFlow's is. */
static struct element complex_div(struct formula *f, struct element a, struct element b) {
  expr_id scale = bin(f, SCALAR_MAX, un(f, SCALAR_ABS, b.re), un(f, SCALAR_ABS, b.im));
  struct element s = {DIV_(b.re, scale), DIV_(b.im, scale)};
  expr_id norm = ADD_(MUL_(s.re, s.re), MUL_(s.im, s.im));
  struct element n = complex_mul(f, a, f_conj(f, s));
  return (struct element){DIV_(DIV_(n.re, norm), scale), DIV_(DIV_(n.im, norm), scale)};
}
static struct element complex_exp(struct formula *f, struct element a) {
  expr_id e = un(f, SCALAR_EXP, a.re);
  return (struct element){MUL_(e, un(f, SCALAR_COS, a.im)), MUL_(e, un(f, SCALAR_SIN, a.im))};
}
static struct element complex_log(struct formula *f, struct element a) {
  return (struct element){un(f, SCALAR_LOG, f_norm(f, a).re), bin(f, SCALAR_ATAN2, a.im, a.re)};
}
/* sqrt: from |a|, without cancellation: t = sqrt((|re| + |a|) / 2). */
static struct element complex_sqrt(struct formula *f, struct element a) {
  enum dtype d = element_dtype(f, a);
  struct kernel *k = f->kernel;
  expr_id zero = number(f, d, 0), half = number(f, d, 0.5);
  expr_id t = un(f, SCALAR_SQRT, MUL_(ADD_(un(f, SCALAR_ABS, a.re), f_norm(f, a).re), half));
  expr_id safe = expr_select(k, bin(f, SCALAR_EQ, t, zero), number(f, d, 1), t);
  expr_id other = MUL_(DIV_(un(f, SCALAR_ABS, a.im), safe), half);
  expr_id positive = bin(f, SCALAR_LE, zero, a.re);
  expr_id re = expr_select(k, positive, t, other), im = expr_select(k, positive, other, t);
  expr_id negative = bin(f, SCALAR_LT, a.im, zero);
  return (struct element){re, expr_select(k, negative, un(f, SCALAR_NEG, im), im)};
}

static struct element cx(struct formula *f, enum scalar_op op, struct element a) { return f_unary(f, op, a); }

/* (e^z +- e^-z) / 2 and what follows from it */
static struct element complex_hyperbolic(struct formula *f, enum scalar_op op, struct element a) {
  expr_id sh = un(f, SCALAR_SINH, a.re), ch = un(f, SCALAR_COSH, a.re);
  expr_id s = un(f, SCALAR_SIN, a.im), c = un(f, SCALAR_COS, a.im);
  if (op == SCALAR_SINH)
    return (struct element){MUL_(sh, c), MUL_(ch, s)};
  if (op == SCALAR_COSH)
    return (struct element){MUL_(ch, c), MUL_(sh, s)};
  return complex_div(f, complex_hyperbolic(f, SCALAR_SINH, a), complex_hyperbolic(f, SCALAR_COSH, a));
}
static struct element times_i(struct formula *f, struct element a) { return (struct element){un(f, SCALAR_NEG, a.im), a.re}; }
static struct element times_minus_i(struct formula *f, struct element a) { return (struct element){a.im, un(f, SCALAR_NEG, a.re)}; }

/* log(a + sqrt(a*a + 1)) and its relatives */
static struct element complex_inverse_hyperbolic(struct formula *f, enum scalar_op op, struct element a) {
  struct element one = f_const_like(f, a, 1), half = f_const_like(f, a, 0.5);
  struct element plus = f_binary(f, SCALAR_ADD, a, one), minus = f_binary(f, SCALAR_SUB, a, one);
  if (op == SCALAR_ATANH) {
    struct element q = f_binary(f, SCALAR_SUB, cx(f, SCALAR_LOG, plus), cx(f, SCALAR_LOG, f_binary(f, SCALAR_SUB, one, a)));
    return f_binary(f, SCALAR_MUL, half, q);
  }
  struct element root;
  if (op == SCALAR_ASINH)
    root = cx(f, SCALAR_SQRT, f_binary(f, SCALAR_ADD, f_binary(f, SCALAR_MUL, a, a), one));
  else
    root = f_binary(f, SCALAR_MUL, cx(f, SCALAR_SQRT, plus), cx(f, SCALAR_SQRT, minus));
  return cx(f, SCALAR_LOG, f_binary(f, SCALAR_ADD, a, root));
}

static struct element complex_unary(struct formula *f, enum scalar_op op, struct element a) {
  switch (op) {
  case SCALAR_NEG: return (struct element){un(f, op, a.re), un(f, op, a.im)};
  case SCALAR_ABS: return f_norm(f, a);
  case SCALAR_EXP: return complex_exp(f, a);
  case SCALAR_LOG: return complex_log(f, a);
  case SCALAR_SQRT: return complex_sqrt(f, a);
  case SCALAR_LOG1P: return complex_log(f, f_binary(f, SCALAR_ADD, a, f_const_like(f, a, 1)));
  case SCALAR_EXPM1: return f_binary(f, SCALAR_SUB, complex_exp(f, a), f_const_like(f, a, 1));
  case SCALAR_SINH:
  case SCALAR_COSH:
  case SCALAR_TANH: return complex_hyperbolic(f, op, a);
  case SCALAR_SIN: return times_minus_i(f, complex_hyperbolic(f, SCALAR_SINH, times_i(f, a)));
  case SCALAR_COS: return complex_hyperbolic(f, SCALAR_COSH, times_i(f, a));
  case SCALAR_TAN: return times_minus_i(f, complex_hyperbolic(f, SCALAR_TANH, times_i(f, a)));
  case SCALAR_ASINH:
  case SCALAR_ACOSH:
  case SCALAR_ATANH: return complex_inverse_hyperbolic(f, op, a);
  case SCALAR_ATAN: return times_minus_i(f, complex_inverse_hyperbolic(f, SCALAR_ATANH, times_i(f, a)));
  case SCALAR_ASIN: return times_minus_i(f, complex_inverse_hyperbolic(f, SCALAR_ASINH, times_i(f, a)));
  case SCALAR_ACOS: return f_binary(f, SCALAR_SUB, f_const_like(f, a, M_PI_2), complex_unary(f, SCALAR_ASIN, a));
  default: return (struct element){un(f, op, a.re), un(f, op, a.im)};
  }
}

struct element f_unary(struct formula *f, enum scalar_op op, struct element a) {
  enum dtype dtype = (enum dtype)expr_get(f->kernel, a.re)->dtype;
  if (op == SCALAR_SQRT && dtype_is_integer(dtype)) /* through double and rounded towards zero, as C would */
    return real_element(expr_cast(f->kernel, dtype, un(f, op, expr_cast(f->kernel, DTYPE_DOUBLE, a.re))));
  return a.im ? complex_unary(f, op, a) : real_element(un(f, op, a.re));
}

struct element f_binary(struct formula *f, enum scalar_op op, struct element a, struct element b) {
  if (expr_get(f->kernel, a.re)->dtype == DTYPE_BOOL) /* as C computes with bools: what is not 0 is true */
    op = op == SCALAR_ADD ? SCALAR_OR : op == SCALAR_SUB ? SCALAR_XOR : op == SCALAR_MUL ? SCALAR_AND : op;
  if (!a.im && !b.im)
    return real_element(bin(f, op, a.re, b.re));
  if (!a.im)
    a.im = number(f, element_dtype(f, a), 0);
  if (!b.im)
    b.im = number(f, element_dtype(f, b), 0);
  switch (op) {
  case SCALAR_MUL: return complex_mul(f, a, b);
  case SCALAR_DIV: return complex_div(f, a, b);
  case SCALAR_EQ: return real_element(bin(f, SCALAR_AND, bin(f, op, a.re, b.re), bin(f, op, a.im, b.im)));
  case SCALAR_NE: return real_element(bin(f, SCALAR_OR, bin(f, op, a.re, b.re), bin(f, op, a.im, b.im)));
  case SCALAR_POW: return f_pow(f, a, b);
  default: return (struct element){bin(f, op, a.re, b.re), bin(f, op, a.im, b.im)};
  }
}

struct element f_select(struct formula *f, struct element condition, struct element a, struct element b) {
  expr_id im = NO_EXPR;
  if (a.im || b.im)
    im = expr_select(f->kernel, condition.re, f_imag(f, a).re, f_imag(f, b).re);
  return (struct element){expr_select(f->kernel, condition.re, a.re, b.re), im};
}

struct element f_cast(struct formula *f, enum dtype dtype, struct element a) {
  enum dtype part = dtype_real(dtype);
  struct element r = {expr_cast(f->kernel, part, a.re), NO_EXPR};
  if (dtype_is_complex(dtype))
    r.im = a.im ? expr_cast(f->kernel, part, a.im) : number(f, part, 0);
  return r;
}

struct element f_poly(struct formula *f, struct element x, int count, const double *c) {
  struct element r = f_const_like(f, x, c[0]);
  for (int i = 1; i < count; i++)
    r = f_binary(f, SCALAR_ADD, f_binary(f, SCALAR_MUL, r, x), f_const_like(f, x, c[i]));
  return r;
}

/* Clenshaw's recurrence. */
struct element f_chebyshev(struct formula *f, struct element t, int count, const double *c) {
  struct element twice = f_binary(f, SCALAR_ADD, t, t), b0 = f_const_like(f, t, 0), b1 = b0;
  for (int i = count - 1; i >= 1; i--) {
    struct element next = f_binary(f, SCALAR_SUB, f_binary(f, SCALAR_MUL, twice, b0), b1);
    b1 = b0;
    b0 = f_binary(f, SCALAR_ADD, next, f_const_like(f, t, c[i]));
  }
  return f_binary(f, SCALAR_ADD, f_binary(f, SCALAR_SUB, f_binary(f, SCALAR_MUL, t, b0), b1), f_const_like(f, t, c[0]));
}

struct element f_sigmoid(struct formula *f, struct element a) {
  struct element one = f_const_like(f, a, 1);
  return f_binary(f, SCALAR_DIV, one, f_binary(f, SCALAR_ADD, one, f_unary(f, SCALAR_EXP, f_unary(f, SCALAR_NEG, a))));
}

/* log(1 + e^a): e^a far below, a far above, where the rest is below half a unit in the last place. */
struct element f_softplus(struct formula *f, struct element a) {
  enum dtype d = element_dtype(f, a);
  double epsilon = d == DTYPE_DOUBLE ? 0x1p-52 : d == DTYPE_FLOAT ? 0x1p-23 : d == DTYPE_HALF ? 0x1p-10 : 0x1p-7;
  struct element threshold = f_const_like(f, a, log(epsilon) + 2);
  struct element e = f_unary(f, SCALAR_EXP, a);
  struct element large = f_binary(f, SCALAR_LT, f_unary(f, SCALAR_NEG, threshold), a);
  struct element small = f_binary(f, SCALAR_LT, a, threshold);
  return f_select(f, large, a, f_select(f, small, e, f_unary(f, SCALAR_LOG1P, e)));
}

/* 0 of a zero, NaN of NaN; of a complex number a / |a|. */
struct element f_sign(struct formula *f, struct element a) {
  struct element zero = f_const_like(f, a, 0);
  if (a.im) {
    struct element n = f_norm(f, a), is_zero = f_binary(f, SCALAR_EQ, n, f_const_like(f, n, 0));
    struct element safe = f_select(f, is_zero, f_const_like(f, n, 1), n);
    return f_select(f, is_zero, zero, (struct element){DIV_(a.re, safe.re), DIV_(a.im, safe.re)});
  }
  struct element one = f_const_like(f, a, 1);
  if (dtype_is_unsigned(element_dtype(f, a)))
    return f_select(f, f_binary(f, SCALAR_EQ, a, zero), zero, one);
  struct element r = f_select(f, f_binary(f, SCALAR_LT, a, zero), f_const_like(f, a, -1), zero);
  r = f_select(f, f_binary(f, SCALAR_LT, zero, a), one, r);
  return dtype_is_float(element_dtype(f, a)) ? f_select(f, f_binary(f, SCALAR_NE, a, a), a, r) : r;
}

struct element f_pow(struct formula *f, struct element a, struct element b) {
  if (!a.im)
    return f_binary(f, SCALAR_POW, a, b);
  struct element zero = f_const_like(f, a, 0), one = f_const_like(f, a, 1);
  struct element power = complex_exp(f, complex_mul(f, b, complex_log(f, a)));
  struct element of_zero = f_select(f, f_binary(f, SCALAR_EQ, b, zero), one, zero);
  return f_select(f, f_binary(f, SCALAR_EQ, a, zero), of_zero, power);
}
