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
/* a * b, where no overflow of a makes a number of b = 0. */
static expr_id times_zero(struct formula *f, expr_id a, expr_id b) {
  return expr_select(f->kernel, bin(f, SCALAR_EQ, b, number(f, (enum dtype)expr_get(f->kernel, b)->dtype, 0)), b, MUL_(a, b));
}
/* Also of -0: sides of a branch cut differ by it. */
static expr_id is_negative(struct formula *f, expr_id x) {
  enum dtype bits = expr_get(f->kernel, x)->dtype == DTYPE_DOUBLE ? DTYPE_INT64 : DTYPE_INT32;
  return bin(f, SCALAR_LT, expr_bitcast(f->kernel, bits, x), number(f, bits, 0));
}
static expr_id negate_as(struct formula *f, expr_id x, expr_id sign) {
  return expr_select(f->kernel, is_negative(f, sign), un(f, SCALAR_NEG, x), x);
}

/* The imaginary part, of which nothing is asked where the real one is at the end: its sine and cosine are no numbers where it is none. */
static expr_id angle_before(struct formula *f, struct element a, expr_id re, double end) {
  enum dtype d = element_dtype(f, a);
  return expr_select(f->kernel, bin(f, SCALAR_EQ, re, number(f, d, end)), number(f, d, 0), a.im);
}
/* At the ends, whatever the angle is: 0, or infinitely far away. */
static struct element complex_exp(struct formula *f, struct element a) {
  expr_id e = un(f, SCALAR_EXP, a.re), angle = angle_before(f, a, a.re, -INFINITY), c = un(f, SCALAR_COS, angle);
  expr_id is_far = bin(f, SCALAR_AND, bin(f, SCALAR_EQ, a.re, number(f, element_dtype(f, a), INFINITY)), bin(f, SCALAR_NE, c, c));
  return (struct element){expr_select(f->kernel, is_far, e, MUL_(e, c)), times_zero(f, e, un(f, SCALAR_SIN, angle))};
}
/* e^x cos y - 1 without cancellation: (e^x - 1) - 2 e^x sin(y / 2)^2, as Eigen has it: what overflows is NaN. */
static struct element complex_expm1(struct formula *f, struct element a) {
  enum dtype d = element_dtype(f, a);
  expr_id half = un(f, SCALAR_SIN, MUL_(a.im, number(f, d, 0.5))), em = un(f, SCALAR_EXPM1, a.re), e = ADD_(em, number(f, d, 1));
  return (struct element){SUB_(em, MUL_(MUL_(number(f, d, 2), e), MUL_(half, half))), MUL_(e, un(f, SCALAR_SIN, a.im))};
}
static struct element complex_log(struct formula *f, struct element a) {
  return (struct element){un(f, SCALAR_LOG, f_norm(f, a).re), bin(f, SCALAR_ATAN2, a.im, a.re)};
}
/* log(1 + a) a / ((1 + a) - 1): what the sum rounds away is in both. Of what has no such quotient NaN, as Eigen has it. */
static struct element complex_log1p(struct formula *f, struct element a) {
  expr_id one = number(f, element_dtype(f, a), 1), zero = number(f, element_dtype(f, a), 0);
  struct element sum = {ADD_(one, a.re), a.im}, kept = {SUB_(sum.re, one), a.im};
  struct element same = real_element(bin(f, SCALAR_AND, bin(f, SCALAR_EQ, kept.re, zero), bin(f, SCALAR_EQ, kept.im, zero)));
  struct element log = complex_log(f, sum), safe = f_select(f, same, f_const_like(f, a, 1), kept);
  struct element is_end = f_binary(f, SCALAR_EQ, log, sum);
  return f_select(f, f_binary(f, SCALAR_OR, same, is_end), a, complex_mul(f, log, complex_div(f, a, safe)));
}
/* sqrt: from |a|, without cancellation: t = sqrt((|re| + |a|) / 2). */
static struct element complex_sqrt(struct formula *f, struct element a) {
  enum dtype d = element_dtype(f, a);
  struct kernel *k = f->kernel;
  expr_id zero = number(f, d, 0), half = number(f, d, 0.5);
  expr_id t = un(f, SCALAR_SQRT, ADD_(MUL_(un(f, SCALAR_ABS, a.re), half), MUL_(f_norm(f, a).re, half)));
  expr_id safe = expr_select(k, bin(f, SCALAR_EQ, t, zero), number(f, d, 1), t);
  expr_id other = MUL_(DIV_(un(f, SCALAR_ABS, a.im), safe), half);
  expr_id positive = bin(f, SCALAR_LE, zero, a.re);
  expr_id re = expr_select(k, positive, t, other), im = expr_select(k, positive, other, t);
  expr_id infinity = number(f, d, INFINITY), infinite = bin(f, SCALAR_EQ, un(f, SCALAR_ABS, a.im), infinity);
  return (struct element){expr_select(k, infinite, infinity, re), negate_as(f, expr_select(k, infinite, infinity, im), a.im)};
}

/* By e = exp(-2 |x|), which does not overflow: tanh = (1 - e^2 + i 4 e sin y cos y) / ((1 - e)^2 + 4 e cos(y)^2). */
static struct element complex_tanh(struct formula *f, struct element a) {
  enum dtype d = element_dtype(f, a);
  expr_id twice = MUL_(number(f, d, -2), un(f, SCALAR_ABS, a.re)), one = number(f, d, 1);
  expr_id e = un(f, SCALAR_EXP, twice), less = un(f, SCALAR_NEG, un(f, SCALAR_EXPM1, twice));
  expr_id angle = angle_before(f, a, un(f, SCALAR_ABS, a.re), INFINITY), four = MUL_(number(f, d, 4), e);
  expr_id s = un(f, SCALAR_SIN, angle), c = un(f, SCALAR_COS, angle), below = ADD_(MUL_(less, less), MUL_(four, MUL_(c, c)));
  return (struct element){negate_as(f, DIV_(MUL_(less, ADD_(one, e)), below), a.re), DIV_(MUL_(four, MUL_(s, c)), below)};
}
/* (e^z +- e^-z) / 2 */
static struct element complex_hyperbolic(struct formula *f, enum scalar_op op, struct element a) {
  expr_id sh = un(f, SCALAR_SINH, a.re), ch = un(f, SCALAR_COSH, a.re);
  expr_id s = un(f, SCALAR_SIN, a.im), c = un(f, SCALAR_COS, a.im);
  if (op == SCALAR_SINH)
    return (struct element){times_zero(f, c, sh), times_zero(f, ch, s)};
  return (struct element){MUL_(ch, c), times_zero(f, sh, s)};
}
static struct element times_i(struct formula *f, struct element a) { return (struct element){un(f, SCALAR_NEG, a.im), a.re}; }
static struct element times_minus_i(struct formula *f, struct element a) { return (struct element){a.im, un(f, SCALAR_NEG, a.re)}; }

/* Kahan, Branch cuts for complex elementary functions (1987): by roots of 1 - z and 1 + z, whose signs of zero say on which side of a cut
 * z lies, and real functions that neither overflow nor cancel. */
static struct element root_of_sum(struct formula *f, struct element z) {
  return complex_sqrt(f, (struct element){ADD_(number(f, element_dtype(f, z), 1), z.re), z.im});
}
static struct element root_of_difference(struct formula *f, struct element z) {
  return root_of_sum(f, (struct element){un(f, SCALAR_NEG, z.re), un(f, SCALAR_NEG, z.im)});
}
static struct element complex_asin(struct formula *f, struct element z) {
  struct element minus = root_of_difference(f, z), plus = root_of_sum(f, z);
  expr_id re = complex_mul(f, minus, plus).re, im = complex_mul(f, f_conj(f, minus), plus).im;
  expr_id infinity = number(f, element_dtype(f, z), INFINITY), flat = bin(f, SCALAR_LT, un(f, SCALAR_ABS, z.im), infinity);
  expr_id at_end = bin(f, SCALAR_AND, flat, bin(f, SCALAR_EQ, un(f, SCALAR_ABS, z.re), infinity));
  re = expr_select(f->kernel, at_end, number(f, element_dtype(f, z), 0), re);
  return (struct element){bin(f, SCALAR_ATAN2, z.re, re), un(f, SCALAR_ASINH, im)};
}
static struct element complex_acos(struct formula *f, struct element z) {
  enum dtype d = element_dtype(f, z);
  struct element minus = root_of_difference(f, z), plus = root_of_sum(f, z);
  expr_id im = complex_mul(f, f_conj(f, plus), minus).im;
  return (struct element){MUL_(number(f, d, 2), bin(f, SCALAR_ATAN2, minus.re, plus.re)), un(f, SCALAR_ASINH, im)};
}
static struct element complex_acosh(struct formula *f, struct element z) {
  enum dtype d = element_dtype(f, z);
  struct element minus = complex_sqrt(f, (struct element){SUB_(z.re, number(f, d, 1)), z.im}), plus = root_of_sum(f, z);
  expr_id re = complex_mul(f, f_conj(f, minus), plus).re;
  return (struct element){un(f, SCALAR_ASINH, re), MUL_(number(f, d, 2), bin(f, SCALAR_ATAN2, minus.im, plus.re))};
}
/* log1p(4 x / ((1 - x)^2 + y^2)) / 4 + i atan2(2 y, (1 - x) (1 + x) - y^2) / 2, of |x|; of what is large, 1 / z. */
static struct element complex_atanh(struct formula *f, struct element z) {
  enum dtype d = element_dtype(f, z);
  struct kernel *k = f->kernel;
  expr_id one = number(f, d, 1), two = number(f, d, 2), four = number(f, d, 4), x = un(f, SCALAR_ABS, z.re), y = z.im;
  expr_id less = SUB_(one, x), near = ADD_(MUL_(less, less), MUL_(y, y)), zero = number(f, d, 0);
  expr_id re = DIV_(un(f, SCALAR_LOG1P, DIV_(MUL_(four, x), near)), four);
  expr_id im = DIV_(bin(f, SCALAR_ATAN2, MUL_(two, y), SUB_(MUL_(less, ADD_(one, x)), MUL_(y, y))), two);
  struct element size = f_norm(f, z), far = complex_div(f, f_const_like(f, z, 1), z);
  expr_id large = bin(f, SCALAR_LT, number(f, d, d == DTYPE_DOUBLE ? 0x1p54 : 0x1p26), size.re);
  expr_id right = negate_as(f, number(f, d, M_PI_2), y), infinite = bin(f, SCALAR_EQ, size.re, number(f, d, INFINITY));
  re = expr_select(k, large, expr_select(k, infinite, zero, un(f, SCALAR_ABS, far.re)), re);
  return (struct element){negate_as(f, re, z.re), expr_select(k, large, right, im)};
}

static struct element complex_unary(struct formula *f, enum scalar_op op, struct element a) {
  switch (op) {
  case SCALAR_NEG: return (struct element){un(f, op, a.re), un(f, op, a.im)};
  case SCALAR_ABS: return f_norm(f, a);
  case SCALAR_EXP: return complex_exp(f, a);
  case SCALAR_LOG: return complex_log(f, a);
  case SCALAR_SQRT: return complex_sqrt(f, a);
  case SCALAR_LOG1P: return complex_log1p(f, a);
  case SCALAR_EXPM1: return complex_expm1(f, a);
  case SCALAR_SINH:
  case SCALAR_COSH: return complex_hyperbolic(f, op, a);
  case SCALAR_TANH: return complex_tanh(f, a);
  case SCALAR_SIN: return times_minus_i(f, complex_hyperbolic(f, SCALAR_SINH, times_i(f, a)));
  case SCALAR_COS: return complex_hyperbolic(f, SCALAR_COSH, times_i(f, a));
  case SCALAR_TAN: return times_minus_i(f, complex_tanh(f, times_i(f, a)));
  case SCALAR_ASIN: return complex_asin(f, a);
  case SCALAR_ACOS: return complex_acos(f, a);
  case SCALAR_ACOSH: return complex_acosh(f, a);
  case SCALAR_ATANH: return complex_atanh(f, a);
  case SCALAR_ASINH: return times_minus_i(f, complex_asin(f, times_i(f, a)));
  case SCALAR_ATAN: return times_minus_i(f, complex_atanh(f, times_i(f, a)));
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

/* 1 / (1 + e^-a); of a complex number in the left half e^a / (1 + e^a), as e^-a overflows there. */
struct element f_sigmoid(struct formula *f, struct element a) {
  struct element one = f_const_like(f, a, 1);
  if (a.im) {
    struct element is_left = real_element(bin(f, SCALAR_LT, a.re, number(f, element_dtype(f, a), 0)));
    struct element e = complex_exp(f, f_select(f, is_left, a, f_unary(f, SCALAR_NEG, a)));
    return complex_div(f, f_select(f, is_left, e, one), f_binary(f, SCALAR_ADD, one, e));
  }
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

/* With t = sqrt((|re| + |a|) / 2): (t - i im / (2 t)) / |a| on the right. On the left, and at the ends, as Eigen has it: both sides of the
 * cut are one, infinities give 0, and 0 gives infinity without an angle. */
static struct element complex_rsqrt(struct formula *f, struct element a) {
  enum dtype d = element_dtype(f, a);
  struct kernel *k = f->kernel;
  expr_id zero = number(f, d, 0), infinity = number(f, d, INFINITY), x = un(f, SCALAR_ABS, a.re), y = un(f, SCALAR_ABS, a.im);
  expr_id size = f_norm(f, a).re, t = un(f, SCALAR_SQRT, MUL_(number(f, d, 0.5), ADD_(x, size)));
  expr_id along = DIV_(t, size), turn = MUL_(MUL_(number(f, d, 2), t), size), is_right = bin(f, SCALAR_LT, zero, a.re);
  expr_id left = expr_select(k, bin(f, SCALAR_EQ, a.re, zero), along, DIV_(y, turn)), away = un(f, SCALAR_NEG, along);
  expr_id re = expr_select(k, is_right, along, left);
  expr_id im = expr_select(k, is_right, DIV_(un(f, SCALAR_NEG, a.im), turn), expr_select(k, bin(f, SCALAR_LT, a.im, zero), along, away));
  expr_id is_zero = bin(f, SCALAR_EQ, size, zero), is_end = bin(f, SCALAR_EQ, bin(f, SCALAR_MAX, x, y), infinity);
  return (struct element){expr_select(k, is_zero, infinity, expr_select(k, is_end, zero, re)),
                          expr_select(k, is_zero, number(f, d, NAN), expr_select(k, is_end, zero, im))};
}
struct element f_rsqrt(struct formula *f, struct element a) {
  return a.im ? complex_rsqrt(f, a) : f_binary(f, SCALAR_DIV, f_const_like(f, a, 1), f_unary(f, SCALAR_SQRT, a));
}

struct element f_pow(struct formula *f, struct element a, struct element b) {
  if (!a.im)
    return f_binary(f, SCALAR_POW, a, b);
  return complex_exp(f, complex_mul(f, b, complex_log(f, a)));
}
