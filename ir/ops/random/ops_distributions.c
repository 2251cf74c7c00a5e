/* ops_distributions.c: numbers with gamma and Poisson distributions, over the words that TensorFlow sets aside for each of them:
 * pairs of normals and pairs of uniforms, each from a block of its own, used from the second to the first. Gamma: Marsaglia and
 * Tsang (A simple method for generating gamma variables, 2000). Poisson: Knuth's product of uniforms for small rates, else
 * Hoermann (The transformed rejection method for generating Poisson random variables, 1993). */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/random/random_stream.h"

#define RESERVED 256 /* blocks for each number */

static expr_id f64(struct kb *kb, double v) { return expr_float(kb->k, DTYPE_DOUBLE, v); }
static expr_id bin(struct kb *kb, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(kb->k, op, a, b); }
static expr_id mul(struct kb *kb, expr_id a, expr_id b) { return bin(kb, SCALAR_MUL, a, b); }
static expr_id add(struct kb *kb, expr_id a, expr_id b) { return bin(kb, SCALAR_ADD, a, b); }
static expr_id sub(struct kb *kb, expr_id a, expr_id b) { return bin(kb, SCALAR_SUB, a, b); }

/* ---- gamma ---- */

/* Whether the pair is taken: a bound that needs no logarithm first. */
static expr_id accepted(struct kb *kb, expr_id u, expr_id x, expr_id v, expr_id d) {
  expr_id square = mul(kb, x, x), quick = sub(kb, f64(kb, 1), mul(kb, mul(kb, f64(kb, 0.0331), square), square));
  expr_id slow = add(kb, mul(kb, f64(kb, 0.5), square), mul(kb, d, add(kb, sub(kb, f64(kb, 1), v), expr_unary(kb->k, SCALAR_LOG, v))));
  return bin(kb, SCALAR_OR, bin(kb, SCALAR_LT, u, quick), bin(kb, SCALAR_LT, expr_unary(kb->k, SCALAR_LOG, u), slow));
}

/* Tries until a pair is taken; the reserve ends it, for parameters that are no numbers. */
static void draw_gamma(struct pair_stream *s, expr_id alpha, uint32_t out) {
  struct kb *kb = s->kb;
  expr_id one = f64(kb, 1), below = bin(kb, SCALAR_LT, alpha, one);
  expr_id d = kb_get(kb, kb_local(kb, add(kb, alpha, expr_select(kb->k, below, f64(kb, 2.0 / 3), f64(kb, -1.0 / 3)))));
  expr_id c = kb_get(kb, kb_local(kb, bin(kb, SCALAR_DIV, f64(kb, 1.0 / 3), expr_unary(kb->k, SCALAR_SQRT, d))));
  uint32_t again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_and(kb, kb_get(kb, again), kb_lt(kb, kb_get(kb, s->block), kb_int(kb, RESERVED))));
  expr_id x = pairs_normal(s), root = kb_get(kb, kb_local(kb, add(kb, one, mul(kb, c, x))));
  kb_if(kb, bin(kb, SCALAR_LT, f64(kb, 0), root));
  expr_id v = kb_get(kb, kb_local(kb, mul(kb, mul(kb, root, root), root)));
  expr_id u = pairs_uniform(s);
  kb_if(kb, accepted(kb, u, x, v, d));
  kb_set(kb, out, mul(kb, d, v));
  kb_if(kb, below);
  expr_id b = pairs_uniform(s);
  kb_set(kb, out, mul(kb, kb_get(kb, out), bin(kb, SCALAR_POW, b, bin(kb, SCALAR_DIV, one, alpha))));
  kb_close(kb, 1);
  kb_set(kb, again, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_close(kb, 3);
}

/* -log(1 - u) for the exponential distribution, which alpha = 1 gives */
static void draw_gamma_or_exponential(struct pair_stream *s, expr_id alpha, uint32_t out) {
  struct kb *kb = s->kb;
  kb_if(kb, bin(kb, SCALAR_EQ, alpha, f64(kb, 1)));
  expr_id u = pairs_uniform(s);
  kb_set(kb, out, expr_unary(kb->k, SCALAR_NEG, expr_unary(kb->k, SCALAR_LOG1P, expr_unary(kb->k, SCALAR_NEG, u))));
  kb_else(kb);
  draw_gamma(s, alpha, out);
  kb_close(kb, 1);
}

/* ---- Poisson ---- */

/* Counts the uniforms whose product stays above e^-rate. */
static void draw_poisson_small(struct pair_stream *s, expr_id rate, uint32_t out) {
  struct kb *kb = s->kb;
  expr_id limit = kb_get(kb, kb_local(kb, expr_unary(kb->k, SCALAR_EXP, expr_unary(kb->k, SCALAR_NEG, rate))));
  uint32_t product = kb_local(kb, f64(kb, 1)), again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_set(kb, out, f64(kb, -1));
  kb_while(kb, kb_and(kb, kb_get(kb, again), kb_lt(kb, kb_get(kb, s->block), kb_int(kb, RESERVED))));
  expr_id u = pairs_uniform(s);
  kb_set(kb, product, mul(kb, kb_get(kb, product), u));
  kb_set(kb, out, add(kb, kb_get(kb, out), f64(kb, 1)));
  kb_set(kb, again, bin(kb, SCALAR_LT, limit, kb_get(kb, product)));
  kb_close(kb, 1);
}

/* Hoermann's constants: a, b, the inverse of alpha and v_r. */
static void draw_poisson_large(struct pair_stream *s, expr_id rate, double highest, uint32_t out) {
  struct kb *kb = s->kb;
  expr_id b = kb_get(kb, kb_local(kb, add(kb, f64(kb, 0.931), mul(kb, f64(kb, 2.53), expr_unary(kb->k, SCALAR_SQRT, rate)))));
  expr_id a = add(kb, f64(kb, -0.059), mul(kb, f64(kb, 0.02483), b)), half = f64(kb, 0.5);
  expr_id inverse = add(kb, f64(kb, 1.1239), bin(kb, SCALAR_DIV, f64(kb, 1.1328), sub(kb, b, f64(kb, 3.4))));
  expr_id v_r = sub(kb, f64(kb, 0.9277), bin(kb, SCALAR_DIV, f64(kb, 3.6224), sub(kb, b, f64(kb, 2))));
  uint32_t again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_and(kb, kb_get(kb, again), kb_lt(kb, kb_get(kb, s->block), kb_int(kb, RESERVED))));
  expr_id u = sub(kb, pairs_uniform(s), half), v = pairs_uniform(s);
  expr_id shifted = sub(kb, half, expr_unary(kb->k, SCALAR_ABS, u));
  expr_id slope = add(kb, bin(kb, SCALAR_DIV, mul(kb, f64(kb, 2), a), shifted), b);
  expr_id k = expr_unary(kb->k, SCALAR_FLOOR, add(kb, add(kb, mul(kb, slope, u), rate), f64(kb, 0.43)));
  k = kb_get(kb, kb_local(kb, k));
  expr_id quick = kb_and(kb, bin(kb, SCALAR_LE, f64(kb, 0.07), shifted), bin(kb, SCALAR_LE, v, v_r));
  expr_id outside = kb_and(kb, bin(kb, SCALAR_LT, shifted, f64(kb, 0.013)), bin(kb, SCALAR_LT, shifted, v));
  outside = bin(kb, SCALAR_OR, bin(kb, SCALAR_LT, k, f64(kb, 0)), outside);
  expr_id scaled = add(kb, bin(kb, SCALAR_DIV, a, mul(kb, shifted, shifted)), b);
  expr_id left = expr_unary(kb->k, SCALAR_LOG, bin(kb, SCALAR_DIV, mul(kb, v, inverse), scaled));
  expr_id right =
    sub(kb, mul(kb, k, expr_unary(kb->k, SCALAR_LOG, rate)), add(kb, rate, expr_unary(kb->k, SCALAR_LGAMMA, add(kb, k, f64(kb, 1)))));
  expr_id slow = kb_and(kb, expr_unary(kb->k, SCALAR_NOT, outside), bin(kb, SCALAR_LE, left, right));
  kb_if(kb, kb_and(kb, bin(kb, SCALAR_LE, k, f64(kb, highest)), bin(kb, SCALAR_OR, quick, slow)));
  kb_set(kb, out, k);
  kb_set(kb, again, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_close(kb, 2);
}

static double highest_value(enum dtype dtype) {
  switch (dtype) {
  case DTYPE_INT32: return 2147483647.0;
  case DTYPE_INT64: return 0x1p63;
  case DTYPE_HALF: return 65504;
  case DTYPE_FLOAT: return 0x1.fffffep127;
  default: return 0x1.fffffffffffffp1023;
  }
}

/* Of an infinite rate infinity, which of an integer is 0. */
static void draw_poisson(struct pair_stream *s, expr_id rate, enum dtype dtype, uint32_t out) {
  struct kb *kb = s->kb;
  kb_if(kb, bin(kb, SCALAR_LT, rate, f64(kb, 10)));
  draw_poisson_small(s, rate, out);
  kb_else(kb);
  kb_if(kb, bin(kb, SCALAR_EQ, rate, f64(kb, INFINITY)));
  kb_set(kb, out, f64(kb, dtype_is_float(dtype) ? INFINITY : 0));
  kb_else(kb);
  draw_poisson_large(s, rate, highest_value(dtype), out);
  kb_close(kb, 2);
}

/* ---- all numbers of an op ---- */

/* dims: [samples ..., the parameter's ...]; numbers are counted with the samples of one parameter together. */
static status draw_all(struct op_call *c, const struct random_source *source, value_id alpha, int rank, const dim *dims) {
  struct flow_value a = *op_value(c, alpha);
  bool poisson = OP_ROW(c, distribution_row)->poisson;
  int outer = rank - a.rank;
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  struct random_state state = random_bind(&kb, source);
  uint32_t in = kb_in(&kb, alpha), o = kb_out(&kb, op_output_dtype(c, 0), rank, dims);
  expr_id index[LIMIT_RANK], sample = kb_int(&kb, 0), which = kb_int(&kb, 0), samples = kb_dim(&kb, op_count(c, outer, dims));
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  for (int i = 0; i < rank; i++) {
    expr_id *flat = i < outer ? &sample : &which;
    *flat = kb_add(&kb, kb_mul(&kb, *flat, kb_dim(&kb, dims[i])), index[i]);
  }
  struct philox p = random_load(&kb, source, &state);
  struct pair_stream s = pairs_begin(&kb, p, kb_add(&kb, kb_mul(&kb, which, samples), sample), RESERVED);
  expr_id value = kb_get(&kb, kb_local(&kb, load_as(&kb, DTYPE_DOUBLE, in, &index[outer]).re));
  uint32_t out = kb_local(&kb, f64(&kb, NAN));
  if (poisson)
    draw_poisson(&s, value, op_output_dtype(c, 0), out);
  else
    draw_gamma_or_exponential(&s, value, out);
  store_as(&kb, o, index, real_element(kb_get(&kb, out)));
  kb_close(&kb, rank);
  random_advance(&kb, source, &state, kb_mul(&kb, kb_dim(&kb, op_count(c, rank, dims)), kb_int(&kb, RESERVED)));
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* The shape argument goes in front of the parameter's (stateful), or is all of the result's, the parameter's at its end
 * (stateless). */
static status parameter_dims(struct op_call *c, value_id alpha, bool whole, int *rank, dim *dims) {
  value_id shape;
  dim *elements;
  int count;
  TRY(op_input(c, 0, &shape));
  TRY(op_given_shape(c, shape, "shape", &elements, &count));
  struct flow_value a = *op_value(c, alpha);
  *rank = whole ? count : count + a.rank;
  double size = 1;
  for (int i = 0; i < count; i++)
    size *= op_dim_value(c, elements[i]) > 1 ? (double)op_dim_value(c, elements[i]) : 1;
  if (size >= 0x1p63)
    return fail(INVALID_ARGUMENT, "a tensor of that shape has too many elements");
  if (*rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a tensor of rank %d", *rank);
  if (*rank < a.rank)
    return fail(INVALID_ARGUMENT, "shape must end with the shape of the parameter: %s", op_shape_text(c, a.rank, a.dims));
  memcpy(dims, elements, sizeof *dims * (size_t)count);
  for (int i = 0; i < a.rank; i++) {
    if (whole)
      TRY(op_equal_dims(c, dims[*rank - a.rank + i], a.dims[i], "shape must end with the shape of the parameter"));
    dims[*rank - a.rank + i] = a.dims[i];
  }
  return OK;
}

status build_random_distribution(struct op_call *c) {
  value_id alpha;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 1, &alpha));
  TRY(parameter_dims(c, alpha, false, &rank, dims));
  struct random_source source = random_stateful(c);
  return draw_all(c, &source, alpha, rank, dims);
}

/* shape, seed, parameter; or shape, key, counter, alg, parameter */
status build_stateless_distribution(struct op_call *c) {
  struct random_source source = {0};
  value_id alpha, seed;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_input(c, c->in_count - 1, &alpha));
  if (c->in_count == 3) {
    TRY(op_input(c, 1, &seed));
    TRY(random_scramble(c, seed, &source.key, &source.counter));
  } else {
    TRY(random_given(c, 1, &source));
  }
  TRY(parameter_dims(c, alpha, true, &rank, dims));
  return draw_all(c, &source, alpha, rank, dims);
}
