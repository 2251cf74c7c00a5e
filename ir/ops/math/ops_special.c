/* ops_special.c: special functions of two and three arguments: incomplete gamma (and its derivatives) and beta, zeta, polygamma. Their
 * series and continued fractions run in a while loop for each element, in double; every loop is bounded. Formulas: Abramowitz and
 * Stegun, chapters 6, 23 and 26; continued fractions by Lentz's method. */
#include <math.h>

#include "ir/ops/accumulate.h"

#define TERMS_MAX 4000
#define TINY 1e-290
#define EPSILON 1e-16
#define EPSILON_FLOAT 1e-11 /* where the result is rounded to a float, or less */

/* Doubles inside one element's kernel. */
struct calc {
  struct kb *kb;
  double epsilon; /* what a term must be of a sum, or it is the last */
};
typedef expr_id num;
static num c_(struct calc *m, double v) { return expr_float(m->kb->k, DTYPE_DOUBLE, v); }
static num bin(struct calc *m, enum scalar_op op, num a, num b) { return expr_binary(m->kb->k, op, a, b); }
static num add(struct calc *m, num a, num b) { return bin(m, SCALAR_ADD, a, b); }
static num sub(struct calc *m, num a, num b) { return bin(m, SCALAR_SUB, a, b); }
static num mul(struct calc *m, num a, num b) { return bin(m, SCALAR_MUL, a, b); }
static num div_(struct calc *m, num a, num b) { return bin(m, SCALAR_DIV, a, b); }
static num lt(struct calc *m, num a, num b) { return bin(m, SCALAR_LT, a, b); }
static num eq(struct calc *m, num a, num b) { return bin(m, SCALAR_EQ, a, b); }
static num or_(struct calc *m, num a, num b) { return bin(m, SCALAR_OR, a, b); }
static num un(struct calc *m, enum scalar_op op, num a) { return expr_unary(m->kb->k, op, a); }
static num pick(struct calc *m, num condition, num a, num b) { return expr_select(m->kb->k, condition, a, b); }
static uint32_t var(struct calc *m, num initial) { return kb_local(m->kb, initial); }
static num get(struct calc *m, uint32_t v) { return kb_get(m->kb, v); }
static void set(struct calc *m, uint32_t v, num value) { kb_set(m->kb, v, value); }
/* Computed here and now. */
static num now(struct calc *m, num value) { return get(m, var(m, value)); }
static num whole(struct calc *m, num a) { return eq(m, a, un(m, SCALAR_FLOOR, a)); }
static num away_from_zero(struct calc *m, num a) { return pick(m, lt(m, un(m, SCALAR_ABS, a), c_(m, TINY)), c_(m, TINY), a); }

/* ---- incomplete gamma ---- */

/* x^a e^-x / gamma(a) */
static num gamma_factor(struct calc *m, num a, num x) {
  num exponent = sub(m, sub(m, mul(m, a, un(m, SCALAR_LOG, x)), x), un(m, SCALAR_LGAMMA, a));
  return un(m, SCALAR_EXP, exponent);
}

/* The series of the lower function, in `out`; factor: gamma_factor. */
static void gamma_series(struct calc *m, num a, num x, num factor, uint32_t out) {
  uint32_t term = var(m, c_(m, 1)), sum = var(m, c_(m, 1)), i = var(m, c_(m, 1));
  num more = lt(m, mul(m, get(m, sum), c_(m, m->epsilon)), get(m, term));
  kb_while(m->kb, kb_and(m->kb, more, lt(m, get(m, i), c_(m, TERMS_MAX))));
  set(m, term, div_(m, mul(m, get(m, term), x), add(m, a, get(m, i))));
  set(m, sum, add(m, get(m, sum), get(m, term)));
  set(m, i, add(m, get(m, i), c_(m, 1)));
  kb_close(m->kb, 1);
  set(m, out, div_(m, mul(m, factor, get(m, sum)), a));
}

/* The continued fraction of the upper function, in `out`. */
static void gamma_fraction(struct calc *m, num a, num x, num factor, uint32_t out) {
  num one = c_(m, 1);
  uint32_t b = var(m, sub(m, add(m, x, one), a)), c = var(m, c_(m, 1 / TINY)), d = var(m, div_(m, one, away_from_zero(m, get(m, b))));
  uint32_t h = var(m, get(m, d)), delta = var(m, c_(m, 2)), i = var(m, one);
  num more = lt(m, c_(m, m->epsilon), un(m, SCALAR_ABS, sub(m, get(m, delta), one)));
  kb_while(m->kb, kb_and(m->kb, more, lt(m, get(m, i), c_(m, TERMS_MAX))));
  num an = mul(m, get(m, i), sub(m, a, get(m, i)));
  set(m, b, add(m, get(m, b), c_(m, 2)));
  set(m, d, div_(m, one, away_from_zero(m, add(m, mul(m, an, get(m, d)), get(m, b)))));
  set(m, c, away_from_zero(m, add(m, get(m, b), div_(m, an, get(m, c)))));
  set(m, delta, mul(m, get(m, c), get(m, d)));
  set(m, h, mul(m, get(m, h), get(m, delta)));
  set(m, i, add(m, get(m, i), one));
  kb_close(m->kb, 1);
  set(m, out, mul(m, factor, get(m, h)));
}

/* upper: Igammac. At the edges: 0 or 1 where x is 0, where x or a is infinite. */
static num gamma_ratio(struct calc *m, num a, num x, bool upper) {
  uint32_t out = var(m, c_(m, NAN));
  num zero = c_(m, 0), infinite = c_(m, INFINITY), at_zero = c_(m, upper ? 1 : 0), at_infinity = c_(m, upper ? 0 : 1);
  num bad = or_(m, or_(m, lt(m, x, zero), lt(m, a, zero)), or_(m, un(m, SCALAR_NOT, eq(m, x, x)), un(m, SCALAR_NOT, eq(m, a, a))));
  bad = upper ? or_(m, bad, eq(m, a, zero)) : or_(m, bad, kb_and(m->kb, eq(m, a, zero), lt(m, zero, x)));
  num edge = or_(m, or_(m, eq(m, x, zero), eq(m, a, zero)), or_(m, eq(m, x, infinite), eq(m, a, infinite)));
  num both = kb_and(m->kb, eq(m, a, infinite), eq(m, x, infinite)); /* 0, the lower and the upper one */
  num value = pick(m, or_(m, eq(m, x, zero), eq(m, a, infinite)), pick(m, both, zero, at_zero), at_infinity);
  if (!upper)
    bad = kb_and(m->kb, bad, un(m, SCALAR_NOT, eq(m, x, zero)));
  kb_if(m->kb, un(m, SCALAR_NOT, bad));
  kb_if(m->kb, edge);
  set(m, out, value);
  kb_else(m->kb);
  num fraction = kb_and(m->kb, lt(m, c_(m, 1), x), lt(m, a, x)), factor = now(m, gamma_factor(m, a, x));
  kb_if(m->kb, fraction);
  gamma_fraction(m, a, x, factor, out);
  if (!upper)
    set(m, out, sub(m, c_(m, 1), get(m, out)));
  kb_else(m->kb);
  gamma_series(m, a, x, factor, out);
  if (upper)
    set(m, out, sub(m, c_(m, 1), get(m, out)));
  kb_close(m->kb, 3);
  return get(m, out);
}

/* ---- derivatives of the lower function by a ----
 *
 * The series and the fraction are differentiated term by term; with the derivative's share of the common factor (log x less digamma) both
 * give dP/da divided by x^a e^-x / gamma(a), which never overflows. */

static num digamma(struct calc *m, num x) { return f_digamma(&m->kb->f, real_element(x)).re; }

/* Over the factor x^a e^-x / gamma(a). */
static void series_slope(struct calc *m, num a, num x, uint32_t out) {
  num one = c_(m, 1), zero = c_(m, 0);
  uint32_t term = var(m, one), sum = var(m, one), slope = var(m, zero), slopes = var(m, zero), i = var(m, one);
  num more = or_(m, lt(m, mul(m, get(m, sum), c_(m, EPSILON)), get(m, term)),
                 lt(m, mul(m, un(m, SCALAR_ABS, get(m, slopes)), c_(m, EPSILON)), un(m, SCALAR_ABS, get(m, slope))));
  kb_while(m->kb, kb_and(m->kb, more, lt(m, get(m, i), c_(m, TERMS_MAX))));
  num bottom = add(m, a, get(m, i)), ratio = now(m, div_(m, x, bottom));
  set(m, slope, mul(m, ratio, sub(m, get(m, slope), div_(m, get(m, term), bottom))));
  set(m, term, mul(m, get(m, term), ratio));
  set(m, sum, add(m, get(m, sum), get(m, term)));
  set(m, slopes, add(m, get(m, slopes), get(m, slope)));
  set(m, i, add(m, get(m, i), one));
  kb_close(m->kb, 1);
  num factor_slope = sub(m, un(m, SCALAR_LOG, x), digamma(m, add(m, a, one)));
  set(m, out, div_(m, add(m, mul(m, get(m, sum), factor_slope), get(m, slopes)), a));
}

static void fraction_slope(struct calc *m, num a, num x, uint32_t out) {
  num one = c_(m, 1), zero = c_(m, 0);
  uint32_t b = var(m, sub(m, add(m, x, one), a)), c = var(m, c_(m, 1 / TINY)), d = var(m, div_(m, one, away_from_zero(m, get(m, b))));
  uint32_t dc = var(m, zero), dd = var(m, mul(m, get(m, d), get(m, d))), h = var(m, get(m, d)), dh = var(m, get(m, dd));
  uint32_t delta = var(m, c_(m, 2)), ddelta = var(m, one), i = var(m, one);
  num close = c_(m, 8 * EPSILON), off = un(m, SCALAR_ABS, sub(m, get(m, delta), one));
  num more = or_(m, lt(m, close, off), lt(m, close, un(m, SCALAR_ABS, get(m, ddelta))));
  kb_while(m->kb, kb_and(m->kb, more, lt(m, get(m, i), c_(m, TERMS_MAX))));
  num k = get(m, i), an = now(m, mul(m, k, sub(m, a, k))); /* its derivative is k, that of b is -1 */
  set(m, b, add(m, get(m, b), c_(m, 2)));
  num bottom_slope = now(m, add(m, sub(m, mul(m, k, get(m, d)), one), mul(m, an, get(m, dd))));
  set(m, d, div_(m, one, away_from_zero(m, add(m, mul(m, an, get(m, d)), get(m, b)))));
  set(m, dd, un(m, SCALAR_NEG, mul(m, mul(m, get(m, d), get(m, d)), bottom_slope)));
  num top = now(m, sub(m, k, mul(m, an, div_(m, get(m, dc), get(m, c)))));
  set(m, dc, sub(m, div_(m, top, get(m, c)), one));
  set(m, c, away_from_zero(m, add(m, get(m, b), div_(m, an, get(m, c)))));
  set(m, delta, mul(m, get(m, c), get(m, d)));
  set(m, ddelta, add(m, mul(m, get(m, dc), get(m, d)), mul(m, get(m, c), get(m, dd))));
  set(m, dh, add(m, mul(m, get(m, dh), get(m, delta)), mul(m, get(m, h), get(m, ddelta))));
  set(m, h, mul(m, get(m, h), get(m, delta)));
  set(m, i, add(m, k, one));
  kb_close(m->kb, 1);
  num factor_slope = sub(m, un(m, SCALAR_LOG, x), digamma(m, a));
  set(m, out, un(m, SCALAR_NEG, add(m, mul(m, get(m, h), factor_slope), get(m, dh))));
}

/* IgammaGradA: dP/da; RandomGammaGrad (sample): -(dP/da) / (dP/dx), by how much a number drawn for a moves with a. */
static num gamma_slope(struct calc *m, num a, num x, bool sample) {
  uint32_t out = var(m, c_(m, NAN));
  num zero = c_(m, 0), infinite = c_(m, INFINITY), at_zero = eq(m, x, zero);
  num good = kb_and(m->kb, kb_and(m->kb, lt(m, zero, a), bin(m, SCALAR_LE, zero, x)), eq(m, a, a));
  kb_if(m->kb, or_(m, at_zero, good)); /* of 0 whatever a is */
  kb_if(m->kb, or_(m, at_zero, or_(m, eq(m, x, infinite), eq(m, a, infinite))));
  set(m, out, pick(m, eq(m, x, infinite), c_(m, -0.0), zero));
  kb_else(m->kb);
  kb_if(m->kb, kb_and(m->kb, lt(m, c_(m, 1), x), lt(m, a, x)));
  fraction_slope(m, a, x, out);
  kb_else(m->kb);
  series_slope(m, a, x, out);
  kb_close(m->kb, 1);
  set(m, out, sample ? un(m, SCALAR_NEG, mul(m, get(m, out), x)) : mul(m, get(m, out), gamma_factor(m, a, x)));
  kb_close(m->kb, 2);
  return get(m, out);
}

/* ---- zeta of Hurwitz ---- */

#define DIRECT 12 /* terms that are added one by one, before the series of Euler and Maclaurin */
static const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510};

/* a^-x, a < 0 with whole numbers x only; for a float by logarithm, which vectors have */
static num negative_power(struct calc *m, num a, num x) {
  if (m->epsilon == EPSILON)
    return bin(m, SCALAR_POW, a, un(m, SCALAR_NEG, x));
  num size = un(m, SCALAR_EXP, un(m, SCALAR_NEG, mul(m, x, un(m, SCALAR_LOG, un(m, SCALAR_ABS, a)))));
  num turns = kb_and(m->kb, lt(m, a, c_(m, 0)), un(m, SCALAR_NOT, whole(m, mul(m, x, c_(m, 0.5)))));
  return pick(m, turns, un(m, SCALAR_NEG, size), size);
}
static num zeta_sum(struct calc *m, num x, num q) {
  uint32_t sum = var(m, c_(m, 0)), at = var(m, q), i = var(m, c_(m, 0));
  num more = or_(m, lt(m, get(m, i), c_(m, DIRECT)), lt(m, get(m, at), c_(m, DIRECT)));
  kb_while(m->kb, kb_and(m->kb, more, lt(m, get(m, i), c_(m, TERMS_MAX * 16.0))));
  set(m, sum, add(m, get(m, sum), negative_power(m, get(m, at), x)));
  set(m, at, add(m, get(m, at), c_(m, 1)));
  set(m, i, add(m, get(m, i), c_(m, 1)));
  kb_close(m->kb, 1);
  num w = get(m, at), power = now(m, negative_power(m, w, x));
  num total = add(m, get(m, sum), div_(m, mul(m, power, w), sub(m, x, c_(m, 1))));
  total = add(m, total, mul(m, c_(m, 0.5), power));
  num factor = div_(m, mul(m, x, power), w); /* x (x+1) ... (x+2j) w^(-x-2j-1) / (2j+2)! without the factorial */
  double factorial = 2;
  for (int j = 0; j < (int)(sizeof bernoulli / sizeof *bernoulli); j++) {
    total = add(m, total, mul(m, factor, c_(m, bernoulli[j] / factorial)));
    factorial *= (2 * j + 3) * (2 * j + 4);
    num next = mul(m, add(m, x, c_(m, 2 * j + 1)), add(m, x, c_(m, 2 * j + 2)));
    factor = div_(m, mul(m, factor, next), mul(m, w, w));
  }
  return total;
}

static num zeta(struct calc *m, num x, num q) {
  num one = c_(m, 1), zero = c_(m, 0);
  uint32_t out = var(m, c_(m, NAN));
  num low = bin(m, SCALAR_LE, q, zero), pole = kb_and(m->kb, low, whole(m, q)), half = mul(m, x, c_(m, 0.5));
  num defined = or_(m, lt(m, zero, q), kb_and(m->kb, kb_and(m->kb, low, whole(m, x)), un(m, SCALAR_NOT, pole)));
  num even_pole = kb_and(m->kb, pole, whole(m, half)); /* of odd order there is no limit */
  kb_if(m->kb, or_(m, eq(m, x, one), kb_and(m->kb, lt(m, one, x), even_pole)));
  set(m, out, c_(m, INFINITY));
  kb_else(m->kb);
  kb_if(m->kb, kb_and(m->kb, lt(m, one, x), defined));
  num first = pick(m, eq(m, q, one), one, pick(m, lt(m, q, one), c_(m, INFINITY), zero)); /* q^-x, which is all of an infinite order */
  num sum = pick(m, eq(m, q, c_(m, INFINITY)), zero, zeta_sum(m, x, q));
  set(m, out, pick(m, eq(m, x, c_(m, INFINITY)), first, sum));
  kb_close(m->kb, 2);
  return get(m, out);
}

/* (-1)^(n+1) n! zeta(n+1, x); of order 0: digamma */
static num polygamma(struct calc *m, num n, num x) {
  num one = c_(m, 1), next = add(m, n, one), zero = c_(m, 0);
  num order = kb_and(m->kb, whole(m, n), lt(m, zero, n));
  num z = zeta(m, pick(m, order, next, c_(m, 2)), x);
  num half = mul(m, next, c_(m, 0.5)), sign = pick(m, whole(m, half), one, c_(m, -1));
  num value = mul(m, mul(m, sign, un(m, SCALAR_EXP, un(m, SCALAR_LGAMMA, next))), z);
  num first = f_digamma(&m->kb->f, real_element(x)).re;
  return pick(m, eq(m, n, zero), first, pick(m, order, value, c_(m, NAN)));
}

/* ---- incomplete beta ---- */

/* The continued fraction, for x < (a + 1) / (a + b + 2); each round takes an even and an odd step. */
static void beta_fraction(struct calc *m, num a, num b, num x, uint32_t out) {
  num one = c_(m, 1), ab = add(m, a, b), up = add(m, a, one), down = sub(m, a, one);
  uint32_t c = var(m, one), d = var(m, div_(m, one, away_from_zero(m, sub(m, one, div_(m, mul(m, ab, x), up)))));
  uint32_t h = var(m, get(m, d)), delta = var(m, c_(m, 2)), i = var(m, one);
  num more = lt(m, c_(m, EPSILON), un(m, SCALAR_ABS, sub(m, get(m, delta), one)));
  kb_while(m->kb, kb_and(m->kb, more, lt(m, get(m, i), c_(m, TERMS_MAX))));
  num k = get(m, i), k2 = add(m, k, k), at = add(m, a, k2);
  num even = div_(m, mul(m, mul(m, k, sub(m, b, k)), x), mul(m, add(m, down, k2), at));
  num odd = div_(m, mul(m, mul(m, un(m, SCALAR_NEG, add(m, a, k)), add(m, ab, k)), x), mul(m, at, add(m, up, k2)));
  num steps[2] = {even, odd};
  for (int s = 0; s < 2; s++) {
    set(m, d, div_(m, one, away_from_zero(m, add(m, one, mul(m, steps[s], get(m, d))))));
    set(m, c, away_from_zero(m, add(m, one, div_(m, steps[s], get(m, c)))));
    set(m, delta, mul(m, get(m, c), get(m, d)));
    set(m, h, mul(m, get(m, h), get(m, delta)));
  }
  set(m, i, add(m, k, one));
  kb_close(m->kb, 1);
  num logs = add(m, mul(m, a, un(m, SCALAR_LOG, x)), mul(m, b, un(m, SCALAR_LOG1P, un(m, SCALAR_NEG, x))));
  num gammas = sub(m, sub(m, un(m, SCALAR_LGAMMA, ab), un(m, SCALAR_LGAMMA, a)), un(m, SCALAR_LGAMMA, b));
  set(m, out, div_(m, mul(m, un(m, SCALAR_EXP, add(m, logs, gammas)), get(m, h)), a));
}

static num beta_ratio(struct calc *m, num a, num b, num x) {
  num zero = c_(m, 0), one = c_(m, 1);
  uint32_t out = var(m, c_(m, NAN));
  num valid =
    kb_and(m->kb, kb_and(m->kb, lt(m, zero, a), lt(m, zero, b)), kb_and(m->kb, bin(m, SCALAR_LE, zero, x), bin(m, SCALAR_LE, x, one)));
  num turn = lt(m, div_(m, add(m, a, one), add(m, add(m, a, b), c_(m, 2))), x);
  kb_if(m->kb, valid);
  kb_if(m->kb, or_(m, eq(m, x, zero), eq(m, x, one)));
  set(m, out, x);
  kb_else(m->kb);
  num first = now(m, pick(m, turn, b, a)), second = now(m, pick(m, turn, a, b)), at = now(m, pick(m, turn, sub(m, one, x), x));
  beta_fraction(m, first, second, at, out);
  set(m, out, pick(m, turn, sub(m, one, get(m, out)), get(m, out)));
  kb_close(m->kb, 2);
  return get(m, out);
}

/* ---- rows ---- */

typedef num (*special_function)(struct calc *m, const num *in);

static status special(struct op_call *c, special_function function) {
  value_id in[3];
  uint32_t buffers[3];
  for (uint32_t i = 0; i < c->in_count; i++)
    TRY(op_input(c, i, &in[i]));
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_broadcast(c, in[0], in[1], &rank, dims));
  if (c->in_count > 2)
    TRY(op_broadcast(c, flow_add_value(op_flow(c), op_value(c, in[0])->dtype, rank, dims), in[2], &rank, dims));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  struct calc m = {&kb, op_value(c, in[0])->dtype == DTYPE_DOUBLE ? EPSILON : EPSILON_FLOAT};
  for (uint32_t i = 0; i < c->in_count; i++)
    buffers[i] = kb_in(&kb, in[i]);
  uint32_t o = kb_out(&kb, op_value(c, in[0])->dtype, rank, dims);
  expr_id index[LIMIT_RANK];
  num x[3];
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  for (uint32_t i = 0; i < c->in_count; i++)
    x[i] = now(&m, f_cast(&kb.f, DTYPE_DOUBLE, kb_load_broadcast(&kb, buffers[i], rank, index)).re);
  store_as(&kb, o, index, real_element(function(&m, x)));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

static num of_igamma(struct calc *m, const num *in) { return gamma_ratio(m, in[0], in[1], false); }
static num of_igammac(struct calc *m, const num *in) { return gamma_ratio(m, in[0], in[1], true); }
static num of_igamma_grad(struct calc *m, const num *in) { return gamma_slope(m, in[0], in[1], false); }
static num of_random_gamma_grad(struct calc *m, const num *in) { return gamma_slope(m, in[0], in[1], true); }
static num of_zeta(struct calc *m, const num *in) { return zeta(m, in[0], in[1]); }
static num of_polygamma(struct calc *m, const num *in) { return polygamma(m, in[0], in[1]); }
static num of_betainc(struct calc *m, const num *in) { return beta_ratio(m, in[0], in[1], in[2]); }

status build_igamma(struct op_call *c) { return special(c, of_igamma); }
status build_igammac(struct op_call *c) { return special(c, of_igammac); }
status build_igamma_grad(struct op_call *c) { return special(c, of_igamma_grad); }
status build_random_gamma_grad(struct op_call *c) { return special(c, of_random_gamma_grad); }
status build_zeta(struct op_call *c) { return special(c, of_zeta); }
status build_polygamma(struct op_call *c) { return special(c, of_polygamma); }

/* Its inputs have one shape, but for scalars. */
status build_betainc(struct op_call *c) {
  value_id shaped = NO_VALUE, v;
  for (uint32_t i = 0; i < c->in_count; i++) {
    TRY(op_input(c, i, &v));
    if (shaped && op_value(c, v)->rank > 0)
      TRY(op_same_shape(c, shaped, v, "Shapes are inconsistent"));
    shaped = op_value(c, v)->rank > 0 ? v : shaped;
  }
  return special(c, of_betainc);
}
