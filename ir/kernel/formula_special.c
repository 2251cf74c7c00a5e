/* formula_special.c: special functions of one argument as formulas without loops, computed in double and rounded once.
 *
 * Inverse normal distribution: Acklam's rational approximation and, for doubles, one step of Halley's method. Digamma: reflection,
 * recurrence up to 10, asymptotic series. Bessel functions: Chebyshev series on [0,8] and, over sqrt(x), beyond (the
 * coefficients are discrete cosine transforms of the functions at 200 nodes). */
#include <math.h>

#include "ir/kernel/formula_wide.h"

/* ---- inverse of the normal distribution ---- */

static const double middle_top[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                    1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
static const double middle_bottom[] = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                                       6.680131188771972e+01,  -1.328068155288572e+01, 1};
static const double tail_top[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                  -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
static const double tail_bottom[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1};

/* The quantile of p in (0, 1/2], q = p - 1/2, to 9 digits: enough for a float. */
static struct element rough_quantile(struct formula *f, struct element p, struct element q) {
  struct element r = mul(f, q, q);
  struct element middle = divide(f, mul(f, q, POLYNOMIAL(r, middle_top)), POLYNOMIAL(r, middle_bottom));
  struct element t = un(f, SCALAR_SQRT, mul(f, num(f, -2), un(f, SCALAR_LOG, p)));
  struct element tail = divide(f, POLYNOMIAL(t, tail_top), POLYNOMIAL(t, tail_bottom));
  return f_select(f, less(f, p, num(f, 0.02425)), tail, middle);
}
/* Halley's step */
static struct element better_quantile(struct formula *f, struct element p, struct element x) {
  struct element error = sub(f, mul(f, num(f, 0.5), un(f, SCALAR_ERFC, mul(f, x, num(f, -M_SQRT1_2)))), p);
  struct element density = un(f, SCALAR_EXP, mul(f, num(f, 0.5), mul(f, x, x)));
  struct element u = mul(f, mul(f, error, num(f, 2.5066282746310002)), density);
  return sub(f, x, divide(f, u, add(f, num(f, 1), mul(f, num(f, 0.5), mul(f, x, u)))));
}

static struct element ndtri(struct formula *f, struct element p, bool is_double) {
  struct element zero = num(f, 0), one = num(f, 1), half = num(f, 0.5);
  struct element upper = less(f, half, p), given = f_select(f, upper, sub(f, one, p), p);
  struct element edge = f_binary(f, SCALAR_EQ, given, zero), inside = less(f, zero, given), q = f_select(f, inside, given, half);
  struct element x = rough_quantile(f, q, sub(f, q, half));
  x = is_double ? better_quantile(f, q, x) : x;
  x = f_select(f, inside, x, f_select(f, edge, num(f, -INFINITY), num(f, NAN)));
  return f_select(f, upper, un(f, SCALAR_NEG, x), x);
}
struct element f_ndtri(struct formula *f, struct element a) {
  return narrow(f, a, ndtri(f, wide(f, a), element_dtype(f, a) == DTYPE_DOUBLE));
}

/* From ndtri((x + 1) / 2); a step of Newton's method gives back what adding 1 lost near 0. */
static struct element erfinv_of_double(struct formula *f, struct element x) {
  struct element y = mul(f, ndtri(f, mul(f, num(f, 0.5), add(f, x, num(f, 1))), true), num(f, M_SQRT1_2));
  struct element slope = mul(f, num(f, M_2_SQRTPI), un(f, SCALAR_EXP, un(f, SCALAR_NEG, mul(f, y, y))));
  struct element better = sub(f, y, divide(f, sub(f, un(f, SCALAR_ERF, y), x), slope));
  return f_select(f, less(f, un(f, SCALAR_ABS, x), num(f, 0.5)), better, y);
}
/* Of others nothing is lost: what is added to 1/2 is at hand. */
static struct element erfinv_of_float(struct formula *f, struct element x) {
  struct element a = un(f, SCALAR_ABS, x), half = num(f, 0.5), one = num(f, 1), inside = less(f, a, one);
  struct element known = f_select(f, inside, a, num(f, 0)), p = mul(f, half, sub(f, one, known));
  struct element y = mul(f, rough_quantile(f, p, mul(f, num(f, -0.5), known)), num(f, -M_SQRT1_2));
  struct element edge = f_binary(f, SCALAR_EQ, a, one);
  return odd(f, x, f_select(f, inside, y, f_select(f, edge, num(f, INFINITY), num(f, NAN))));
}
struct element f_erfinv(struct formula *f, struct element a) {
  return element_dtype(f, a) == DTYPE_DOUBLE ? erfinv_of_double(f, a) : narrow(f, a, erfinv_of_float(f, wide(f, a)));
}

/* ---- digamma ---- */

static const double digamma_series[] = {1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12, 0};

/* pi over the tangent of pi x, |x| <= 1/2: cosine and sine by Taylor's series, which need no reduction here. */
static struct element pi_cotangent(struct formula *f, struct element x) {
  enum { TERMS = 12 };
  double sine[TERMS], cosine[TERMS]; /* the highest power first */
  double factor = 1;
  for (int i = 0; i < 2 * TERMS; i++) {
    (i % 2 ? sine : cosine)[TERMS - 1 - i / 2] = i / 2 % 2 ? -factor : factor;
    factor *= M_PI / (i + 1);
  }
  struct element z = mul(f, x, x);
  return divide(f, mul(f, num(f, M_PI), POLYNOMIAL(z, cosine)), mul(f, x, POLYNOMIAL(z, sine)));
}
struct element f_digamma(struct formula *f, struct element a) {
  struct element x = wide(f, a), one = num(f, 1), zero = num(f, 0);
  struct element reflected = f_binary(f, SCALAR_LE, x, zero), y = f_select(f, reflected, sub(f, one, x), x), sum = zero;
  for (int i = 0; i < 10; i++) {
    struct element small = less(f, y, num(f, 10));
    sum = add(f, sum, f_select(f, small, divide(f, one, y), zero));
    y = add(f, y, f_select(f, small, one, zero));
  }
  struct element inverse = divide(f, one, y), z = mul(f, inverse, inverse);
  struct element series = POLYNOMIAL(z, digamma_series);
  struct element value = sub(f, un(f, SCALAR_LOG, y), mul(f, num(f, 0.5), inverse));
  value = sub(f, sub(f, value, series), sum);
  struct element whole = f_binary(f, SCALAR_EQ, x, un(f, SCALAR_FLOOR, x));
  struct element fraction = sub(f, x, un(f, SCALAR_RINT, x));
  struct element below = f_select(f, whole, num(f, NAN), sub(f, value, pi_cotangent(f, fraction)));
  return narrow(f, a, f_select(f, reflected, below, value));
}

/* ---- modified Bessel functions times e^-|x| ---- */

static const double i0_small[] = {0.33839763720473798,    -0.30468267234319835,    0.17162090152220863,    -0.094901097048047514,
                                  0.049305284239670524,   -0.023737414805899259,   0.010546460394594805,   -0.0043243099950504528,
                                  0.0016394756169412128,  -0.00057637557453847025, 0.00018850288509569268, -5.7541950100571395e-05,
                                  1.6448448070395249e-05, -4.4167383582183194e-06, 1.1173875387004984e-06, -2.6707938498904403e-07,
                                  6.0469949697550265e-08, -1.3000249566852419e-08, 2.6598231861463264e-09, -5.1897925235078192e-10,
                                  9.6757759582288832e-11, -1.7267891283534453e-11, 2.9546154411974614e-12, -4.8531956231556704e-13,
                                  7.5933703769237587e-14, -1.120284420785822e-14,  8.359979375427429e-16};
static const double i0_large[] = {0.40224520550705445,     0.0033691164782557338,   6.8897583469142983e-05,  2.8913705208566397e-06,
                                  2.0489185883487693e-07,  2.2666690018269264e-08,  3.3962319156977119e-09,  4.9406024604792265e-10,
                                  1.1889103035400695e-11,  -3.1499158836822973e-11, -1.3215886163209233e-11, -1.7940893215495636e-12,
                                  7.1779471255695168e-13,  3.8526515311332331e-13,  1.5196732761069142e-14,  -4.1362469005434832e-14,
                                  -9.8365759981788879e-15, 3.9979131116751885e-15,  1.3833378886829451e-15,  -4.163336342344337e-16};
static const double i1_small[] = {0.12629359322181682,    -0.17641651835783403,    0.10264365868984703,    -0.052945981208094919,
                                  0.024726449030626423,   -0.010564084894626099,   0.0041564229443127937,  -0.0015135724506311905,
                                  0.00051228595616851591, -0.00016176081582583269, 4.7815651075426152e-05, -1.3273163655909415e-05,
                                  3.4702513079848398e-06, -8.5687202632855896e-07, 2.003294751529161e-07,  -4.4450591087236146e-08,
                                  9.3815371476901889e-09, -1.8872494925159522e-09, 3.6255879243274338e-10, -6.663470983325759e-11,
                                  1.1736028537878695e-11, -1.9837614884110624e-12, 3.2218186452048771e-13, -5.0212056734721953e-14,
                                  7.221861997308565e-15,  -8.2017725944183441e-16};
static const double i1_large[] = {0.38928811750914011,     -0.0097610974913614253,  -0.00011058893876265907, -3.8825648088014475e-06,
                                  -2.5122362390161968e-07, -2.6314688357231832e-08, -3.8353804998614297e-09, -5.5897433792750919e-10,
                                  -1.8975010451782738e-11, 3.2526035198543466e-11,  1.4125733915903993e-11,  2.0357138197368842e-12,
                                  -7.2006844931138405e-13, -4.0836445336367436e-13, -2.120970066243899e-14,  4.2865710980777297e-14,
                                  1.013855666087693e-14,   -3.6193270602780105e-15, -2.2626345241860689e-15, 2.7200464103316337e-16};

/* A series, as its coefficients are listed; what adds nothing to a float is left out of it for one. */
struct series {
  const double *c;
  int count;
};
#define SERIES_FOR(a, table) series_for(element_dtype(f, a), COUNT(table), table)
static struct series series_for(enum dtype dtype, int count, const double *c) {
  while (dtype != DTYPE_DOUBLE && fabs(c[count - 1]) < 1e-10)
    count--;
  return (struct series){c, count};
}
static struct element large_argument(struct formula *f, struct element x, struct series s) {
  struct element safe = f_binary(f, SCALAR_MAX, x, num(f, 8));
  struct element t = sub(f, divide(f, num(f, 16), safe), num(f, 1));
  return divide(f, f_chebyshev(f, t, s.count, s.c), un(f, SCALAR_SQRT, safe));
}
static struct element small_argument(struct formula *f, struct element x, struct series s) {
  struct element safe = f_binary(f, SCALAR_MIN, x, num(f, 8));
  return f_chebyshev(f, sub(f, mul(f, safe, num(f, 0.25)), num(f, 1)), s.count, s.c);
}

struct element f_bessel_i0e(struct formula *f, struct element a) {
  struct element x = un(f, SCALAR_ABS, wide(f, a));
  struct element small = small_argument(f, x, SERIES_FOR(a, i0_small)), large = large_argument(f, x, SERIES_FOR(a, i0_large));
  return narrow(f, a, f_select(f, less(f, num(f, 8), x), large, small));
}
struct element f_bessel_i1e(struct formula *f, struct element a) {
  struct element signed_x = wide(f, a), x = un(f, SCALAR_ABS, signed_x);
  struct element small = mul(f, x, small_argument(f, x, SERIES_FOR(a, i1_small)));
  struct element value = f_select(f, less(f, num(f, 8), x), large_argument(f, x, SERIES_FOR(a, i1_large)), small);
  return narrow(f, a, odd(f, signed_x, value));
}

/* e^|x| times the scaled function; it overflows where e^|x| does, of half and bfloat16 where that of float does. */
static struct element grown(struct formula *f, struct element a, struct element (*scaled)(struct formula *, struct element)) {
  struct element x = element_dtype(f, a) == DTYPE_DOUBLE ? a : f_cast(f, DTYPE_FLOAT, a);
  return narrow(f, a, mul(f, un(f, SCALAR_EXP, un(f, SCALAR_ABS, x)), scaled(f, x)));
}
struct element f_bessel_i0(struct formula *f, struct element a) {
  return grown(f, a, f_bessel_i0e);
}
struct element f_bessel_i1(struct formula *f, struct element a) {
  return grown(f, a, f_bessel_i1e);
}
