/* scalar.c: what each scalar operation means, by plain C on one value: integers as wrapped 64-bit numbers, floats by libm in
 * their own precision (half and bfloat16 in float, rounded after each operation). */
#include "ir/kernel/scalar.h"

#include <assert.h>
#include <math.h>
#include <string.h>

int64_t scalar_wrap(enum dtype dtype, int64_t v) {
  switch (dtype) {
  case DTYPE_BOOL: return v != 0;
  case DTYPE_INT8:
  case DTYPE_QINT8: return (int8_t)v;
  case DTYPE_UINT8:
  case DTYPE_QUINT8: return (uint8_t)v;
  case DTYPE_INT16:
  case DTYPE_QINT16: return (int16_t)v;
  case DTYPE_UINT16:
  case DTYPE_QUINT16: return (uint16_t)v;
  case DTYPE_INT32:
  case DTYPE_QINT32: return (int32_t)v;
  case DTYPE_UINT32:
  case DTYPE_FLOAT: return (uint32_t)v;
  case DTYPE_HALF:
  case DTYPE_BFLOAT16: return (uint16_t)v;
  default: return v;
  }
}

static int64_t div_trunc(bool is_unsigned, int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (is_unsigned)
    return (int64_t)((uint64_t)a / (uint64_t)b);
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static int64_t rem_trunc(bool is_unsigned, int64_t a, int64_t b) {
  if (b == 0 || (!is_unsigned && b == -1))
    return 0;
  return is_unsigned ? (int64_t)((uint64_t)a % (uint64_t)b) : a % b;
}
static int64_t div_floor(bool is_unsigned, int64_t a, int64_t b) {
  int64_t q = div_trunc(is_unsigned, a, b), r = rem_trunc(is_unsigned, a, b);
  return !is_unsigned && r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}
static int64_t mod_floor(bool is_unsigned, int64_t a, int64_t b) {
  int64_t r = rem_trunc(is_unsigned, a, b);
  return !is_unsigned && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static int64_t pow_integer(int64_t base, int64_t exponent, bool is_unsigned) {
  if (!is_unsigned && exponent < 0)
    return 0;
  uint64_t result = 1, b = (uint64_t)base, e = (uint64_t)exponent;
  for (; e; e >>= 1, b *= b)
    if (e & 1)
      result *= b;
  return (int64_t)result;
}
static int64_t shift(enum scalar_op op, enum dtype dtype, int64_t a, int64_t b) {
  int64_t width = (int64_t)dtype_size(dtype) * 8;
  if (b < 0 || b >= width)
    b = width - 1;
  if (op == SCALAR_SHL)
    return (int64_t)((uint64_t)a << b);
  return dtype_is_unsigned(dtype) ? (int64_t)((uint64_t)a >> b) : a >> b;
}

int64_t scalar_eval_integer(enum scalar_op op, enum dtype dtype, enum dtype in, const int64_t *v) {
  bool u = dtype_is_unsigned(in);
  int64_t a = v[0], b = v[1], r;
  switch (op) {
  case SCALAR_ADD: r = (int64_t)((uint64_t)a + (uint64_t)b); break;
  case SCALAR_SUB: r = (int64_t)((uint64_t)a - (uint64_t)b); break;
  case SCALAR_MUL: r = (int64_t)((uint64_t)a * (uint64_t)b); break;
  case SCALAR_FMA: r = (int64_t)((uint64_t)a * (uint64_t)b + (uint64_t)v[2]); break;
  case SCALAR_DIV: r = div_trunc(u, a, b); break;
  case SCALAR_REM: r = rem_trunc(u, a, b); break;
  case SCALAR_FLOORDIV: r = div_floor(u, a, b); break;
  case SCALAR_FLOORMOD: r = mod_floor(u, a, b); break;
  case SCALAR_MIN: r = (u ? (uint64_t)a < (uint64_t)b : a < b) ? a : b; break;
  case SCALAR_MAX: r = (u ? (uint64_t)a > (uint64_t)b : a > b) ? a : b; break;
  case SCALAR_AND: r = a & b; break;
  case SCALAR_OR: r = a | b; break;
  case SCALAR_XOR: r = a ^ b; break;
  case SCALAR_SHL:
  case SCALAR_SHR: r = shift(op, in, a, b); break;
  case SCALAR_MULHI:
    r = dtype_size(in) == 8 ? (int64_t)((uint64_t)(((unsigned __int128)(uint64_t)a * (uint64_t)b) >> 64))
                            : (int64_t)(((uint64_t)a * (uint64_t)b) >> (dtype_size(in) * 8));
    break;
  case SCALAR_NEG: r = (int64_t)(0 - (uint64_t)a); break;
  case SCALAR_ABS: r = !u && a < 0 ? (int64_t)(0 - (uint64_t)a) : a; break;
  case SCALAR_NOT: r = in == DTYPE_BOOL ? !a : ~a; break;
  case SCALAR_POPCOUNT: {
    uint64_t mask = dtype_size(in) == 8 ? ~UINT64_C(0) : (UINT64_C(1) << dtype_size(in) * 8) - 1;
    r = __builtin_popcountll((uint64_t)a & mask);
    break;
  }
  case SCALAR_EQ: r = a == b; break;
  case SCALAR_NE: r = a != b; break;
  case SCALAR_LT: r = u ? (uint64_t)a < (uint64_t)b : a < b; break;
  case SCALAR_LE: r = u ? (uint64_t)a <= (uint64_t)b : a <= b; break;
  case SCALAR_SELECT: r = a ? b : v[2]; break;
  case SCALAR_POW: r = pow_integer(a, b, u); break;
  default: r = a; break; /* casts; rounding of integers is the identity */
  }
  return scalar_wrap(dtype, r);
}

static int64_t float_to_integer(enum dtype dtype, double x) {
  if (dtype == DTYPE_BOOL)
    return x != 0;
  if (dtype == DTYPE_INT64)
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
  if (dtype == DTYPE_UINT64)
    return x >= 0x1p63 && x < 0x1p64 ? (int64_t)(uint64_t)x : x > -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
  if (dtype == DTYPE_UINT32)
    return scalar_wrap(dtype, x > -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN);
  int64_t i = x > -2147483649.0 && x < 2147483648.0 ? (int64_t)x : INT32_MIN;
  return scalar_wrap(dtype, i);
}

static double min_max(enum scalar_op op, double a, double b) {
  if (isnan(a) || isnan(b))
    return NAN;
  return op == SCALAR_MIN ? (b < a ? b : a) : (a < b ? b : a);
}
static double floor_mod(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* In float (is_float) or double precision. */
#define F(fn) (is_float ? (double)fn##f((float)a) : fn(a))
#define F2(fn) (is_float ? (double)fn##f((float)a, (float)b) : fn(a, b))
static double eval_float(enum scalar_op op, bool is_float, double a, double b, double c) {
  switch (op) {
  case SCALAR_ADD: return is_float ? (double)((float)a + (float)b) : a + b;
  case SCALAR_SUB: return is_float ? (double)((float)a - (float)b) : a - b;
  case SCALAR_MUL: return is_float ? (double)((float)a * (float)b) : a * b;
  case SCALAR_DIV: return is_float ? (double)((float)a / (float)b) : a / b;
  case SCALAR_FMA: return is_float ? (double)fmaf((float)a, (float)b, (float)c) : fma(a, b, c);
  case SCALAR_REM: return F2(fmod);
  case SCALAR_FLOORDIV: return is_float ? (double)floorf((float)a / (float)b) : floor(a / b);
  case SCALAR_FLOORMOD: return floor_mod(a, b);
  case SCALAR_MIN:
  case SCALAR_MAX: return min_max(op, a, b);
  case SCALAR_NEG: return -a;
  case SCALAR_ABS: return fabs(a);
  case SCALAR_FLOOR: return floor(a);
  case SCALAR_CEIL: return ceil(a);
  case SCALAR_RINT: return rint(a);
  case SCALAR_TRUNC: return trunc(a);
  case SCALAR_SQRT: return F(sqrt);
  case SCALAR_EXP: return F(exp);
  case SCALAR_EXPM1: return F(expm1);
  case SCALAR_LOG: return F(log);
  case SCALAR_LOG1P: return F(log1p);
  case SCALAR_SIN: return F(sin);
  case SCALAR_COS: return F(cos);
  case SCALAR_TAN: return F(tan);
  case SCALAR_ASIN: return F(asin);
  case SCALAR_ACOS: return F(acos);
  case SCALAR_ATAN: return F(atan);
  case SCALAR_SINH: return F(sinh);
  case SCALAR_COSH: return F(cosh);
  case SCALAR_TANH: return F(tanh);
  case SCALAR_ASINH: return F(asinh);
  case SCALAR_ACOSH: return F(acosh);
  case SCALAR_ATANH: return F(atanh);
  case SCALAR_ERF: return F(erf);
  case SCALAR_ERFC: return F(erfc);
  case SCALAR_LGAMMA: return F(lgamma);
  case SCALAR_POW: return F2(pow);
  case SCALAR_ATAN2: return F2(atan2);
  case SCALAR_NEXTAFTER: return F2(nextafter);
  default: assert(false && "no such float operation"); return NAN;
  }
}

static int64_t eval_compare(enum scalar_op op, double a, double b) {
  switch (op) {
  case SCALAR_EQ: return a == b;
  case SCALAR_NE: return a != b;
  case SCALAR_LT: return a < b;
  default: return a <= b;
  }
}

/* Denormals count as zero, as in the targets' floating-point mode. */
static double flush(enum dtype dtype, double x) {
  double tiny = dtype == DTYPE_DOUBLE ? 0x1p-1022 : dtype == DTYPE_HALF ? 0 : 0x1p-126;
  return fabs(x) < tiny ? copysign(0, x) : x;
}

static int64_t eval_cast(enum dtype dtype, enum dtype in, int64_t v) {
  if (!dtype_is_float(in))
    return dtype_is_float(dtype) ? expr_double_to_bits(dtype, in == DTYPE_UINT64      ? (double)(uint64_t)v
                                                              : dtype == DTYPE_DOUBLE ? (double)v
                                                                                      : (double)(float)v)
                                 : scalar_wrap(dtype, v);
  double x = flush(in, expr_bits_to_double(in, v));
  return dtype_is_float(dtype) ? expr_double_to_bits(dtype, x) : float_to_integer(dtype, x);
}

int64_t scalar_eval(enum scalar_op op, enum dtype dtype, const uint8_t *in, const int64_t *v) {
  if (op == SCALAR_BITCAST)
    return scalar_wrap(dtype, v[0]);
  if (op == SCALAR_CAST)
    return eval_cast(dtype, in[0], v[0]);
  if (op == SCALAR_SELECT)
    return v[0] ? v[1] : v[2];
  if (!dtype_is_float(in[0]))
    return scalar_eval_integer(op, dtype, in[0], v);
  enum dtype t = in[0];
  int n = scalar_operands(op);
  double x[3] = {0, 0, 0};
  for (int i = 0; i < n; i++)
    x[i] = flush(t, expr_bits_to_double(t, v[i]));
  if (dtype == DTYPE_BOOL)
    return eval_compare(op, x[0], x[1]);
  return expr_double_to_bits(dtype, flush(t, eval_float(op, t != DTYPE_DOUBLE, x[0], x[1], x[2])));
}
