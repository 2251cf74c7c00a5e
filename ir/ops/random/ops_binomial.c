/* ops_binomial.c: numbers with a binomial distribution: of `count` trials that succeed with probability p, how many do. Small means:
 * geometric waiting times are added until they exceed the count. Else Hoermann (The generation of binomial random variates, 1993), without
 * the logarithm that TensorFlow leaves out. p above 1/2 counts the failures. */
#include <math.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/random/random_stream.h"

#define RESERVED_FEW 42   /* blocks for each number, by waiting times */
#define RESERVED_MANY 256 /* by rejection */
#define BLOCKS_MAX 100000 /* ends loops over parameters that are no numbers */

static expr_id f64(struct kb *kb, double v) { return expr_float(kb->k, DTYPE_DOUBLE, v); }
static expr_id bin(struct kb *kb, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(kb->k, op, a, b); }
static expr_id mul(struct kb *kb, expr_id a, expr_id b) { return bin(kb, SCALAR_MUL, a, b); }
static expr_id add(struct kb *kb, expr_id a, expr_id b) { return bin(kb, SCALAR_ADD, a, b); }
static expr_id sub(struct kb *kb, expr_id a, expr_id b) { return bin(kb, SCALAR_SUB, a, b); }
static expr_id over(struct kb *kb, expr_id a, expr_id b) { return bin(kb, SCALAR_DIV, a, b); }
static expr_id less(struct kb *kb, expr_id a, expr_id b) { return bin(kb, SCALAR_LT, a, b); }
static expr_id log_of(struct kb *kb, expr_id a) { return expr_unary(kb->k, SCALAR_LOG, a); }
static expr_id now(struct kb *kb, expr_id e) { return kb_get(kb, kb_local(kb, e)); }
static expr_id go_on(struct pair_stream *s, uint32_t again) {
  return kb_and(s->kb, kb_get(s->kb, again), kb_lt(s->kb, kb_get(s->kb, s->block), kb_int(s->kb, BLOCKS_MAX)));
}

static void draw_few(struct pair_stream *s, expr_id count, expr_id p, uint32_t out) {
  struct kb *kb = s->kb;
  expr_id rate = now(kb, expr_unary(kb->k, SCALAR_LOG1P, expr_unary(kb->k, SCALAR_NEG, p)));
  uint32_t waited = kb_local(kb, f64(kb, 0)), again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_set(kb, out, f64(kb, -1));
  kb_while(kb, go_on(s, again));
  expr_id u = pairs_uniform(s);
  kb_set(kb, waited, add(kb, kb_get(kb, waited), expr_unary(kb->k, SCALAR_CEIL, over(kb, log_of(kb, u), rate))));
  kb_set(kb, out, add(kb, kb_get(kb, out), f64(kb, 1)));
  kb_set(kb, again, expr_unary(kb->k, SCALAR_NOT, less(kb, count, kb_get(kb, waited))));
  kb_close(kb, 1);
}

/* What Stirling's formula leaves of log(k!). */
static expr_id stirling_rest(struct kb *kb, expr_id k) {
  static const double first[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                 0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  expr_id next = add(kb, k, f64(kb, 1)), square = mul(kb, next, next);
  expr_id inner = over(kb, sub(kb, f64(kb, 1.0 / 360), over(kb, f64(kb, 1.0 / 1260), square)), square);
  expr_id value = over(kb, sub(kb, f64(kb, 1.0 / 12), inner), next), whole = expr_unary(kb->k, SCALAR_TRUNC, k);
  for (int i = 0; i < 10; i++)
    value =
      expr_select(kb->k, kb_and(kb, bin(kb, SCALAR_EQ, whole, f64(kb, i)), bin(kb, SCALAR_LE, k, f64(kb, 9))), f64(kb, first[i]), value);
  return now(kb, value);
}

struct many {
  expr_id count, p, a, b, c, v_r, r, alpha, m;
};

static struct many many_of(struct kb *kb, expr_id count, expr_id p) {
  struct many d = {.count = count, .p = p};
  expr_id one = f64(kb, 1), deviation = now(kb, expr_unary(kb->k, SCALAR_SQRT, mul(kb, mul(kb, count, p), sub(kb, one, p))));
  d.b = now(kb, add(kb, f64(kb, 1.15), mul(kb, f64(kb, 2.53), deviation)));
  d.a = now(kb, add(kb, add(kb, f64(kb, -0.0873), mul(kb, f64(kb, 0.0248), d.b)), mul(kb, f64(kb, 0.01), p)));
  d.c = now(kb, add(kb, mul(kb, count, p), f64(kb, 0.5)));
  d.v_r = now(kb, sub(kb, f64(kb, 0.92), over(kb, f64(kb, 4.2), d.b)));
  d.r = now(kb, over(kb, p, sub(kb, one, p)));
  d.alpha = now(kb, mul(kb, add(kb, f64(kb, 2.83), over(kb, f64(kb, 5.1), d.b)), deviation));
  d.m = now(kb, expr_unary(kb->k, SCALAR_FLOOR, mul(kb, add(kb, count, one), p)));
  return d;
}

/* The logarithm of what v may be at most. */
static expr_id upper_bound(struct kb *kb, const struct many *d, expr_id k) {
  expr_id one = f64(kb, 1), half = f64(kb, 0.5), m = d->m;
  expr_id rest_m = now(kb, add(kb, sub(kb, d->count, m), one)), rest_k = now(kb, add(kb, sub(kb, d->count, k), one));
  expr_id sum = mul(kb, add(kb, m, half), log_of(kb, over(kb, add(kb, m, one), mul(kb, d->r, rest_m))));
  sum = add(kb, sum, mul(kb, add(kb, d->count, one), log_of(kb, over(kb, rest_m, rest_k))));
  sum = now(kb, add(kb, sum, mul(kb, add(kb, k, half), log_of(kb, over(kb, mul(kb, d->r, rest_k), add(kb, k, one))))));
  sum = now(kb, add(kb, sum, add(kb, stirling_rest(kb, m), stirling_rest(kb, sub(kb, d->count, m)))));
  return now(kb, sub(kb, sub(kb, sum, stirling_rest(kb, k)), stirling_rest(kb, sub(kb, d->count, k))));
}

static void draw_many(struct pair_stream *s, expr_id count, expr_id p, uint32_t out) {
  struct kb *kb = s->kb;
  struct many d = many_of(kb, count, p);
  uint32_t again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  expr_id half = f64(kb, 0.5), zero = f64(kb, 0);
  kb_while(kb, go_on(s, again));
  expr_id u = now(kb, sub(kb, pairs_uniform(s), half)), v = pairs_uniform(s);
  expr_id shifted = now(kb, sub(kb, half, expr_unary(kb->k, SCALAR_ABS, u)));
  expr_id slope = add(kb, over(kb, mul(kb, f64(kb, 2), d.a), shifted), d.b);
  expr_id k = now(kb, expr_unary(kb->k, SCALAR_FLOOR, add(kb, mul(kb, slope, u), d.c)));
  kb_set(kb, out, k);
  kb_if(kb, kb_and(kb, bin(kb, SCALAR_LE, f64(kb, 0.07), shifted), bin(kb, SCALAR_LE, v, d.v_r)));
  kb_set(kb, again, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_else(kb);
  kb_if(kb, kb_and(kb, bin(kb, SCALAR_LE, zero, k), bin(kb, SCALAR_LE, k, count)));
  expr_id bottom = add(kb, over(kb, d.a, mul(kb, shifted, shifted)), d.b);
  expr_id height = log_of(kb, over(kb, mul(kb, v, d.alpha), bottom));
  kb_set(kb, again, expr_unary(kb->k, SCALAR_NOT, bin(kb, SCALAR_LE, height, upper_bound(kb, &d, k))));
  kb_close(kb, 3);
}

/* count and p in the dtype of the op's inputs, in which its choices are made. */
static void draw_number(struct kb *kb, struct philox philox, expr_id number, enum dtype d, expr_id count, expr_id p, uint32_t out) {
  expr_id zero = expr_float(kb->k, d, 0), one = expr_float(kb->k, d, 1), half = expr_float(kb->k, d, 0.5);
  expr_id trials = now(kb, expr_cast(kb->k, DTYPE_DOUBLE, count));
  expr_id none = bin(kb, SCALAR_OR, bin(kb, SCALAR_LE, count, zero), bin(kb, SCALAR_LE, p, zero)), all = bin(kb, SCALAR_LE, one, p);
  expr_id turned = less(kb, half, p), q = now(kb, expr_select(kb->k, turned, sub(kb, one, p), p));
  kb_if(kb, none);
  kb_set(kb, out, f64(kb, 0));
  kb_else(kb);
  kb_if(kb, all);
  kb_set(kb, out, trials);
  kb_else(kb);
  kb_if(kb, bin(kb, SCALAR_EQ, p, p)); /* of NaN the result stays NaN */
  expr_id wide = now(kb, expr_cast(kb->k, DTYPE_DOUBLE, q));
  kb_if(kb, bin(kb, SCALAR_LE, expr_float(kb->k, d, 10), mul(kb, count, q)));
  struct pair_stream many = pairs_begin(kb, philox, number, RESERVED_MANY);
  draw_many(&many, trials, wide, out);
  kb_else(kb);
  struct pair_stream few = pairs_begin(kb, philox, number, RESERVED_FEW);
  draw_few(&few, trials, wide, out);
  kb_close(kb, 1);
  kb_if(kb, turned);
  kb_set(kb, out, sub(kb, trials, kb_get(kb, out)));
  kb_close(kb, 4);
}

/* shape: [samples ..., what counts and probs broadcast to]; numbers are counted with the samples of one pair together. */
static status draw_all(struct op_call *c, const struct random_source *source, value_id shape, value_id counts, value_id probs) {
  int rank, inner;
  dim *dims, both[LIMIT_RANK];
  TRY(op_given_shape(c, shape, "shape", &dims, &rank));
  TRY(op_broadcast(c, counts, probs, &inner, both));
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a tensor of rank %d", rank);
  if (rank < inner)
    return fail(INVALID_ARGUMENT, "Shape passed in must end with broadcasted shape.");
  int outer = rank - inner;
  for (int i = 0; i < inner; i++)
    TRY(op_equal_dims(c, dims[outer + i], both[i], "Shape passed in must end with broadcasted shape"));
  struct kb kb;
  enum dtype d = op_value(c, counts)->dtype;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  struct random_state state = random_bind(&kb, source);
  uint32_t a = kb_in(&kb, counts), b = kb_in(&kb, probs), o = kb_out(&kb, op_output_dtype(c, 0), rank, dims);
  expr_id index[LIMIT_RANK], sample = kb_int(&kb, 0), which = kb_int(&kb, 0), samples = kb_dim(&kb, op_count(c, outer, dims));
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  for (int i = 0; i < rank; i++) {
    expr_id *flat = i < outer ? &sample : &which;
    *flat = kb_add(&kb, kb_mul(&kb, *flat, kb_dim(&kb, dims[i])), index[i]);
  }
  struct philox p = random_load(&kb, source, &state);
  expr_id number = now(&kb, kb_add(&kb, kb_mul(&kb, which, samples), sample));
  expr_id count = now(&kb, kb_load_broadcast(&kb, a, inner, &index[outer]).re),
          chance = now(&kb, kb_load_broadcast(&kb, b, inner, &index[outer]).re);
  uint32_t out = kb_local(&kb, f64(&kb, NAN));
  if (!dtype_is_float(d)) {
    count = now(&kb, expr_cast(kb.k, DTYPE_DOUBLE, count));
    chance = now(&kb, expr_cast(kb.k, DTYPE_DOUBLE, chance));
    d = DTYPE_DOUBLE;
  }
  draw_number(&kb, p, number, d, count, chance, out);
  store_as(&kb, o, index, real_element(kb_get(&kb, out)));
  kb_close(&kb, rank);
  expr_id padded =
    kb_mul(&kb, kb_mul(&kb, kb_dim(&kb, op_count(c, inner, &dims[outer])), kb_int(&kb, 200)), kb_add(&kb, samples, kb_int(&kb, 3)));
  random_advance(&kb, source, &state, kb_mul(&kb, kb_div(&kb, padded, kb_int(&kb, 4)), kb_int(&kb, RESERVED_MANY)));
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* shape, seed, counts, probs; or resource, algorithm, shape, counts, probs */
status build_random_binomial(struct op_call *c) {
  struct random_source source = {0};
  bool generator = op_takes(c, "resource");
  value_id in[5];
  for (uint32_t i = generator ? 2 : 0; i < c->in_count; i++)
    TRY(op_input(c, i, &in[i]));
  if (generator) {
    TRY(random_generator(c, false, &source));
    TRY(random_check_algorithm(c, 1));
    return draw_all(c, &source, in[2], in[3], in[4]);
  }
  TRY(random_scramble(c, in[1], &source.key, &source.counter));
  return draw_all(c, &source, in[0], in[2], in[3]);
}
