/* ops_truncated.c: normal numbers between given bounds, by rejection (Robert, Simulation of truncated normal variables, 1995): from normal
 * numbers where the bounds leave much of them, else from uniform or exponential ones. The numbers come from one stream, in order. */
#include <math.h>
#include <string.h>

#include "ir/ops/arrange.h"
#include "ir/ops/random/random_source.h"

#define TRIES_MAX 1000
#define NORMAL_REACH 1.3 /* deviations inside the bounds from which normal numbers are drawn */

/* Arithmetic in the op's dtype. */
struct maker {
  struct kb *kb;
  enum dtype dtype;
  int group; /* numbers from each block */
  struct philox philox;
  uint32_t block, tries, sample;      /* locals: the next block, rejections in a row, the next sample */
  expr_id samples, limit;             /* of this batch; those to be made */
  expr_id mean, deviation, low, high; /* the bounds in deviations from the mean */
  uint32_t out;
  expr_id batch, stride_batch, stride_sample; /* where sample s of batch b is stored */
};

static expr_id bin(struct maker *m, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(m->kb->k, op, a, b); }
static expr_id un(struct maker *m, enum scalar_op op, expr_id a) { return expr_unary(m->kb->k, op, a); }
static expr_id num(struct maker *m, double v) { return expr_float(m->kb->k, m->dtype, v); }
static expr_id now(struct maker *m, expr_id e) { return kb_get(m->kb, kb_local(m->kb, e)); }
static expr_id add(struct maker *m, expr_id a, expr_id b) { return bin(m, SCALAR_ADD, a, b); }
static expr_id sub(struct maker *m, expr_id a, expr_id b) { return bin(m, SCALAR_SUB, a, b); }
static expr_id mul(struct maker *m, expr_id a, expr_id b) { return bin(m, SCALAR_MUL, a, b); }
static expr_id over(struct maker *m, expr_id a, expr_id b) { return bin(m, SCALAR_DIV, a, b); }
static expr_id unfinished(struct maker *m) { return kb_lt(m->kb, kb_get(m->kb, m->sample), m->limit); }

/* One block's numbers: uniform in [0,1), or normal. */
static void next_group(struct maker *m, bool normal, expr_id *out) {
  struct kb *kb = m->kb;
  expr_id words[4];
  philox_block(kb, &m->philox, expr_cast(kb->k, DTYPE_UINT64, kb_get(kb, m->block)), words);
  for (int i = 0; i < 4; i++)
    words[i] = now(m, words[i]);
  kb_set(kb, m->block, kb_add(kb, kb_get(kb, m->block), kb_int(kb, 1)));
  bool wide = m->group == 2;
  for (int i = 0; i < m->group; i++) {
    expr_id pair[2];
    if (normal) {
      philox_normals(kb, wide ? DTYPE_DOUBLE : DTYPE_FLOAT, wide ? words : &words[i & 2], pair);
      out[i] = now(m, expr_cast(kb->k, m->dtype, pair[i & 1]));
    } else {
      out[i] = now(m, philox_uniform(kb, m->dtype, words[wide ? 2 * i : i], wide ? words[2 * i + 1] : NO_EXPR));
    }
  }
}

/* Takes a number (in deviations) that is accepted, while there are samples to be made. */
static void offer(struct maker *m, expr_id z, expr_id accepted) {
  struct kb *kb = m->kb;
  kb_if(kb, unfinished(m));
  kb_if(kb, accepted);
  expr_id at = kb_add(kb, kb_mul(kb, m->batch, m->stride_batch), kb_mul(kb, kb_get(kb, m->sample), m->stride_sample));
  kb_store(kb, m->out, &at, real_element(add(m, mul(m, z, m->deviation), m->mean)));
  kb_set(kb, m->sample, kb_add(kb, kb_get(kb, m->sample), kb_int(kb, 1)));
  kb_set(kb, m->tries, kb_int(kb, 0));
  kb_else(kb);
  kb_set(kb, m->tries, kb_add(kb, kb_get(kb, m->tries), kb_int(kb, 1)));
  kb_check(kb, kb_lt(kb, kb_get(kb, m->tries), kb_int(kb, TRIES_MAX)), INTERNAL,
           "TruncatedNormal rejection sampler failed to accept a sample.", NO_EXPR, NO_EXPR);
  kb_close(kb, 2);
}

static void from_normal(struct maker *m) {
  expr_id z[4];
  kb_while(m->kb, unfinished(m));
  next_group(m, true, z);
  for (int i = 0; i < m->group; i++)
    offer(m, z[i], kb_and(m->kb, bin(m, SCALAR_LE, m->low, z[i]), bin(m, SCALAR_LE, z[i], m->high)));
  kb_close(m->kb, 1);
}

static void from_uniform(struct maker *m, expr_id width) {
  expr_id z[4], u[4], bound[4], zero = num(m, 0);
  expr_id nearest = now(m, expr_select(m->kb->k, bin(m, SCALAR_LT, m->low, zero), zero, mul(m, m->low, m->low)));
  kb_while(m->kb, unfinished(m));
  next_group(m, false, z);
  for (int i = 0; i < m->group; i++) {
    z[i] = now(m, add(m, mul(m, z[i], width), m->low));
    bound[i] = now(m, over(m, sub(m, nearest, mul(m, z[i], z[i])), num(m, 2)));
  }
  next_group(m, false, u);
  for (int i = 0; i < m->group; i++)
    offer(m, z[i], bin(m, SCALAR_LE, u[i], un(m, SCALAR_EXP, bound[i])));
  kb_close(m->kb, 1);
}

static void from_exponential(struct maker *m) {
  expr_id r[4], root = un(m, SCALAR_SQRT, add(m, mul(m, m->low, m->low), num(m, 4)));
  expr_id alpha = now(m, over(m, add(m, m->low, root), num(m, 2))), near = bin(m, SCALAR_LT, m->low, alpha);
  kb_while(m->kb, unfinished(m));
  next_group(m, false, r);
  for (int i = 0; i < m->group; i += 2) {
    expr_id z = now(m, add(m, over(m, un(m, SCALAR_NEG, un(m, SCALAR_LOG, r[i])), alpha), m->low));
    expr_id x = now(m, expr_select(m->kb->k, near, sub(m, alpha, z), sub(m, m->low, alpha)));
    expr_id g = un(m, SCALAR_EXP, over(m, mul(m, un(m, SCALAR_NEG, x), x), num(m, 2)));
    offer(m, z, kb_and(m->kb, bin(m, SCALAR_LE, r[i + 1], g), bin(m, SCALAR_LT, z, m->high)));
  }
  kb_close(m->kb, 1);
}

/* All samples of one batch. A bound only above is turned over, and so are two bounds below the mean. */
static void make_batch(struct maker *m, const expr_id given[4]) {
  struct kb *kb = m->kb;
  struct kernel *k = kb->k;
  expr_id zero = num(m, 0), infinite = num(m, INFINITY), mean = given[0], deviation = given[1], low = given[2], high = given[3];
  expr_id bounded =
    bin(m, SCALAR_OR, bin(m, SCALAR_LT, un(m, SCALAR_ABS, low), infinite), bin(m, SCALAR_LT, un(m, SCALAR_ABS, high), infinite));
  expr_id valid = kb_and(kb, kb_and(kb, bin(m, SCALAR_LT, zero, deviation), bin(m, SCALAR_LT, low, high)), bounded);
  kb_check(kb, valid, INVALID_ARGUMENT, "Invalid parameters", NO_EXPR, NO_EXPR);
  expr_id turned = bin(m, SCALAR_OR, bin(m, SCALAR_EQ, low, num(m, -INFINITY)), bin(m, SCALAR_LT, high, mean));
  m->mean = mean;
  m->deviation = now(m, expr_select(k, turned, un(m, SCALAR_NEG, deviation), deviation));
  m->low = now(m, over(m, sub(m, expr_select(k, turned, high, low), mean), m->deviation));
  m->high = now(m, over(m, sub(m, expr_select(k, turned, low, high), mean), m->deviation));
  expr_id root = now(m, un(m, SCALAR_SQRT, add(m, mul(m, m->low, m->low), num(m, 4))));
  expr_id power = add(m, num(m, 0.5), over(m, mul(m, m->low, sub(m, m->low, root)), num(m, 4)));
  expr_id cutoff = now(m, over(m, mul(m, num(m, 2), un(m, SCALAR_EXP, power)), add(m, m->low, root)));
  expr_id width = now(m, sub(m, m->high, m->low)), reach = num(m, NORMAL_REACH), below = num(m, -NORMAL_REACH);
  expr_id left = kb_and(kb, bin(m, SCALAR_LT, m->low, below), bin(m, SCALAR_LE, zero, m->high));
  expr_id right = kb_and(kb, bin(m, SCALAR_LT, reach, m->high), bin(m, SCALAR_LE, m->low, zero));
  kb_set(kb, m->tries, kb_int(kb, 0));
  kb_if(kb, bin(m, SCALAR_OR, left, right));
  from_normal(m);
  kb_else(kb);
  kb_if(kb, bin(m, SCALAR_LT, width, cutoff));
  from_uniform(m, width);
  kb_else(kb);
  from_exponential(m);
  kb_close(kb, 2);
}

static struct maker maker_begin(struct kb *kb, enum dtype dtype, struct philox p, uint32_t out) {
  struct maker m = {.kb = kb, .dtype = dtype, .group = dtype == DTYPE_DOUBLE ? 2 : 4, .philox = p, .out = out};
  m.block = kb_local(kb, kb_int(kb, 0));
  m.tries = kb_local(kb, kb_int(kb, 0));
  m.sample = kb_local(kb, kb_int(kb, 0));
  return m;
}

static status read_shape(struct op_call *c, uint32_t input, dim **dims, int *rank) {
  value_id shape;
  TRY(op_input(c, input, &shape));
  TRY(op_given_shape(c, shape, "shape", dims, rank));
  return *rank > LIMIT_RANK ? fail(UNIMPLEMENTED, "a tensor of rank %d", *rank) : OK;
}

/* shape, seed, means, deviations, minima, maxima, which are broadcast to the end of the shape */
status build_stateless_truncated(struct op_call *c) {
  value_id seed, in[4], shape_of;
  int rank, inner = 0;
  dim *dims, both[LIMIT_RANK];
  struct random_source source = {0};
  TRY(read_shape(c, 0, &dims, &rank));
  TRY(op_input(c, 1, &seed));
  TRY(random_scramble(c, seed, &source.key, &source.counter));
  enum dtype dtype = op_output_dtype(c, 0);
  for (uint32_t i = 0; i < 4; i++) {
    TRY(op_input(c, i + 2, &in[i]));
    shape_of = i ? flow_add_value(op_flow(c), dtype, inner, both) : in[0];
    TRY(op_broadcast(c, shape_of, in[i], &inner, both));
  }
  if (rank < inner)
    return fail(INVALID_ARGUMENT, "Shape passed in must end with broadcasted shape.");
  int outer = rank - inner;
  for (int i = 0; i < inner; i++)
    TRY(op_equal_dims(c, dims[outer + i], both[i], "Shape passed in must end with broadcasted shape"));
  struct kb kb;
  kb_begin(&kb, c, dtype);
  struct random_state state = random_bind(&kb, &source);
  uint32_t b[4];
  for (int i = 0; i < 4; i++)
    b[i] = kb_in(&kb, in[i]);
  dim count = op_count(c, rank, dims);
  uint32_t out = kb_out(&kb, dtype, 1, &count);
  struct maker m = maker_begin(&kb, dtype, random_load(&kb, &source, &state), out);
  m.samples = m.limit = kb_dim(&kb, op_count(c, outer, dims));
  m.stride_sample = kb_dim(&kb, op_count(c, inner, &dims[outer]));
  m.stride_batch = kb_int(&kb, 1);
  expr_id index[LIMIT_RANK], given[4];
  kb_loops(&kb, LOOP_SEQ, inner, &dims[outer], index);
  m.batch = kb_int(&kb, 0);
  for (int i = 0; i < inner; i++)
    m.batch = kb_add(&kb, kb_mul(&kb, m.batch, kb_dim(&kb, dims[outer + i])), index[i]);
  for (int i = 0; i < 4; i++)
    given[i] = now(&m, kb_load_broadcast(&kb, b[i], inner, index).re);
  kb_set(&kb, m.sample, kb_int(&kb, 0));
  make_batch(&m, given);
  kb_close(&kb, inner);
  value_id flat = kb_value(&kb, out);
  TRY(kb_finish(&kb));
  op_set_output(c, 0, op_alias(c, flat, dtype, rank, dims));
  return OK;
}

#define USUAL_BATCH 100 /* samples that are made together where the parameters are the same for all */

static expr_id kb_length(struct kb *kb, uint32_t buffer) { return expr_dim(kb->k, kb->k->buffers.items[buffer].dims[0]); }

/* Vectors have a parameter for each row, or one for all. Gives (a bool) whether all four are the same for all rows: bounds in a vector
 * never count as that. */
static expr_id row_parameters(struct kb *kb, const uint32_t parameters[4], expr_id rows, bool same_bounds) {
  expr_id alike = expr_int(kb->k, DTYPE_BOOL, same_bounds);
  for (int i = 0; i < 4; i++) {
    if (kb->k->buffers.items[parameters[i]].rank == 0)
      continue;
    expr_id length = kb_length(kb, parameters[i]), single = kb_eq(kb, length, kb_int(kb, 1));
    kb_check(kb, kb_or(kb, single, kb_eq(kb, length, rows)), INVALID_ARGUMENT, "parameters should have length 1 or shape[0] = %d, not %d",
             rows, length);
    alike = kb_and(kb, alike, single);
  }
  return alike;
}

/* shape, means, deviations, minima, maxima: scalars, or one for each row */
status build_parameterized_truncated(struct op_call *c) {
  static const char *const names[] = {"means", "stddevs", "minvals", "maxvals"};
  value_id in[4];
  dim *dims;
  int rank;
  bool same_bounds = true;
  TRY(read_shape(c, 0, &dims, &rank));
  if (rank == 0)
    return fail(INVALID_ARGUMENT, "Shape tensor must not be empty");
  enum dtype dtype = op_output_dtype(c, 0);
  for (uint32_t i = 0; i < 4; i++) {
    TRY(op_input(c, i + 1, &in[i]));
    struct flow_value x = *op_value(c, in[i]);
    if (x.rank > 1)
      return fail(INVALID_ARGUMENT, "Input %s should be a scalar or vector, got shape: %s", names[i], op_shape_text(c, x.rank, x.dims));
    same_bounds = same_bounds && (i < 2 || x.rank == 0);
    if (x.rank == 1 && dim_equal(op_dims(c), x.dims[0], op_dim(c, 1)) == 0 && dim_equal(op_dims(c), x.dims[0], dims[0]) == 0)
      return fail(INVALID_ARGUMENT, "Input %s should have length 1 or shape[0], got shape: %s", names[i], op_shape_text(c, x.rank, x.dims));
  }
  struct random_source source = random_stateful(c);
  struct kb kb;
  kb_begin(&kb, c, dtype);
  struct random_state state = random_bind(&kb, &source);
  uint32_t b[4];
  for (int i = 0; i < 4; i++)
    b[i] = kb_in(&kb, in[i]);
  dim count = op_count(c, rank, dims);
  uint32_t out = kb_out(&kb, dtype, 1, &count);
  struct maker m = maker_begin(&kb, dtype, random_load(&kb, &source, &state), out);
  expr_id all = kb_dim(&kb, count), hundred = kb_int(&kb, USUAL_BATCH), rows = kb_dim(&kb, dims[0]);
  expr_id alike = row_parameters(&kb, b, rows, same_bounds);
  m.samples = now(&m, expr_select(kb.k, alike, hundred, kb_dim(&kb, op_count(c, rank - 1, &dims[1]))));
  expr_id batches = now(&m, expr_select(kb.k, alike, kb_div(&kb, kb_add(&kb, all, kb_int(&kb, USUAL_BATCH - 1)), hundred), rows));
  m.stride_sample = kb_int(&kb, 1);
  m.stride_batch = m.samples;
  m.batch = kb_for(&kb, LOOP_SEQ, batches);
  m.limit = now(&m, expr_binary(kb.k, SCALAR_MIN, m.samples, kb_sub(&kb, all, kb_mul(&kb, m.batch, m.samples))));
  expr_id given[4];
  for (int i = 0; i < 4; i++) {
    expr_id at = kb.k->buffers.items[b[i]].rank ? kb_clamp(&kb, m.batch, kb_length(&kb, b[i])) : NO_EXPR;
    given[i] = now(&m, kb_load(&kb, b[i], &at).re);
  }
  kb_set(&kb, m.sample, kb_int(&kb, 0));
  make_batch(&m, given);
  kb_close(&kb, 1);
  expr_id blocks =
    kb_div(&kb, kb_mul(&kb, kb_mul(&kb, batches, kb_int(&kb, 2 * TRIES_MAX)), kb_add(&kb, m.samples, kb_int(&kb, 3))), kb_int(&kb, 4));
  random_advance(&kb, &source, &state, blocks);
  value_id flat = kb_value(&kb, out);
  TRY(kb_finish(&kb));
  op_set_output(c, 0, op_alias(c, flat, dtype, rank, dims));
  return OK;
}
