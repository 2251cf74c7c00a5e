/* ops_fractional_pool.c: pooling into regions of two sizes (Graham, "Fractional max-pooling"): the borders of the regions are drawn
 * at random, the rest is pooling between them. Rows and columns have a sequence of borders each, one more than results. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/random/random_source.h"

enum { ROWS = 1, COLUMNS = 2 };

struct fractional {
  dim in[4], out[4], borders[2];
  value_id sequence[2];
  bool pseudo, overlapping;
};

/* ---- the borders ---- */

static status fractional_sizes(struct op_call *c, value_id v, struct fractional *p) {
  struct flow_value x = *op_value(c, v);
  const struct attr_value *ratio = node_attr(c->node, "pooling_ratio");
  if (!ratio || ratio->list.count != 4)
    return fail(INVALID_ARGUMENT, "pooling_ratio field must specify 4 dimensions");
  for (int i = 0; i < 4; i++)
    if (!(ratio->list.items[i].f >= 1))
      return fail(INVALID_ARGUMENT, "pooling_ratio cannot be smaller than 1, got: %g", (double)ratio->list.items[i].f);
  if (ratio->list.items[0].f != 1 || ratio->list.items[3].f != 1)
    return fail(UNIMPLEMENTED, "Fractional pooling is not supported on the batch nor channel dimension.");
  bool seeded = node_attr_int(c->node, "seed", 0) != 0 || node_attr_int(c->node, "seed2", 0) != 0;
  if (seeded && !node_attr_int(c->node, "deterministic", 0))
    return fail(INVALID_ARGUMENT, "Both seed and seed2 should be 0 if deterministic is false.");
  if (x.rank != 4)
    return fail(INVALID_ARGUMENT, "tensor_in must be 4-dimensional: %s", op_shape_text(c, x.rank, x.dims));
  struct kb guard, kb;
  guard_begin(&guard, c);
  for (int i = 0; i < 4; i++) {
    expr_id n = kb_dim(&guard, x.dims[i]), least = expr_float(guard.k, DTYPE_FLOAT, ratio->list.items[i].f);
    kb_check(&guard, kb_le(&guard, least, expr_cast(guard.k, DTYPE_FLOAT, n)), INVALID_ARGUMENT,
             "Pooling ratio is higher than input dimension size: %d", n, NO_EXPR);
  }
  TRY(guard_finish(&guard));
  kb_begin(&kb, c, DTYPE_INT64);
  dim two = op_dim(c, 2);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &two);
  for (int i = 0; i < 2; i++) {
    expr_id at = kb_int(&kb, i), n = expr_cast(kb.k, DTYPE_FLOAT, kb_dim(&kb, x.dims[ROWS + i]));
    expr_id whole =
      expr_unary(kb.k, SCALAR_FLOOR, expr_binary(kb.k, SCALAR_DIV, n, expr_float(kb.k, DTYPE_FLOAT, ratio->list.items[ROWS + i].f)));
    kb_store(&kb, o, &at, real_element(expr_cast(kb.k, DTYPE_INT64, whole)));
  }
  value_id sizes = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  memcpy(p->in, x.dims, sizeof p->in);
  memcpy(p->out, x.dims, sizeof p->out);
  TRY(op_bound_dims(c, sizes, 2, &p->out[ROWS]));
  for (int i = 0; i < 2; i++)
    p->borders[i] = op_add(c, p->out[ROWS + i], op_dim(c, 1));
  p->pseudo = node_attr_int(c->node, "pseudo_random", 0);
  p->overlapping = node_attr_int(c->node, "overlapping", 0);
  return OK;
}

/* The i-th border lies near alpha * (i + u), for one u in a range that keeps all regions of size k or k + 1. */
static void pseudo_random_borders(struct kb *kb, uint32_t out, expr_id n, expr_id m, const struct philox *stream, expr_id block) {
  struct kernel *k = kb->k;
  struct formula f = {.kernel = k, .dtype = DTYPE_DOUBLE};
  struct element many = real_element(expr_cast(k, DTYPE_DOUBLE, n)), few = real_element(expr_cast(k, DTYPE_DOUBLE, m)),
                 one = f_const(&f, 1);
  struct element alpha = f_binary(&f, SCALAR_DIV, many, few);
  expr_id size = kb_div(kb, n, m), words[4], last = kb_add(kb, n, kb_int(kb, 1));
  struct element by_first = f_binary(&f, SCALAR_DIV, real_element(expr_cast(k, DTYPE_DOUBLE, kb_add(kb, size, kb_int(kb, 2)))), alpha);
  struct element by_last = f_binary(&f, SCALAR_DIV, real_element(expr_cast(k, DTYPE_DOUBLE, kb_sub(kb, last, size))), alpha);
  by_first = f_binary(&f, SCALAR_SUB, by_first, one);
  by_last = f_binary(&f, SCALAR_SUB, by_last, f_binary(&f, SCALAR_SUB, few, one));
  philox_block(kb, stream, expr_cast(k, DTYPE_UINT64, block), words);
  struct element u = real_element(philox_uniform(kb, DTYPE_DOUBLE, words[0], words[1]));
  u = f_binary(&f, SCALAR_MUL, u, f_binary(&f, SCALAR_MIN, by_first, by_last));
  u = real_element(kb_get(kb, kb_local(kb, u.re)));
  expr_id i = kb_for(kb, LOOP_SEQ, kb_add(kb, m, kb_int(kb, 1)));
  struct element at = f_binary(&f, SCALAR_ADD, real_element(expr_cast(k, DTYPE_DOUBLE, i)), u);
  expr_id inner = expr_cast(k, DTYPE_INT64, f_unary(&f, SCALAR_CEIL, f_binary(&f, SCALAR_MUL, alpha, at)).re);
  expr_id border = kb_select(kb, kb_eq(kb, i, m), n, kb_sub(kb, inner, kb_int(kb, 1)));
  kb_store(kb, out, &i, real_element(kb_select(kb, kb_eq(kb, i, kb_int(kb, 0)), kb_int(kb, 0), border)));
  kb_close(kb, 1);
}

/* As many regions of size k + 1 as are needed, shuffled among those of size k; then their running sum. */
static void random_borders(struct kb *kb, uint32_t out, expr_id n, expr_id m, const struct philox *stream, expr_id block) {
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0), first = zero;
  expr_id size = kb_div(kb, n, m), larger = kb_mod(kb, n, m);
  kb_store(kb, out, &first, real_element(zero));
  expr_id i = kb_for(kb, LOOP_SEQ, m), at = kb_add(kb, i, one);
  kb_store(kb, out, &at, real_element(kb_add(kb, size, kb_select(kb, kb_lt(kb, i, larger), one, zero))));
  kb_close(kb, 1);
  i = kb_for(kb, LOOP_SEQ, kb_sub(kb, m, one));
  at = kb_add(kb, i, one);
  expr_id left = expr_cast(kb->k, DTYPE_UINT32, kb_sub(kb, m, i));
  expr_id step = expr_binary(kb->k, SCALAR_REM, philox_word(kb, stream, kb_add(kb, kb_mul(kb, block, kb_int(kb, 4)), i)), left);
  expr_id other = kb_get(kb, kb_local(kb, kb_add(kb, at, expr_cast(kb->k, DTYPE_INT64, step))));
  expr_id here = kb_get(kb, kb_local(kb, kb_load(kb, out, &at).re)), there = kb_get(kb, kb_local(kb, kb_load(kb, out, &other).re));
  kb_store(kb, out, &at, real_element(there));
  kb_store(kb, out, &other, real_element(here));
  kb_close(kb, 1);
  i = kb_for(kb, LOOP_SEQ, m);
  at = kb_add(kb, i, one);
  kb_store(kb, out, &at, real_element(kb_add(kb, kb_load(kb, out, &i).re, kb_load(kb, out, &at).re)));
  kb_close(kb, 1);
}

/* A deterministic op draws the same borders in each step: its stream always begins at the start. */
static status draw_borders(struct op_call *c, struct fractional *p) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  bool same = node_attr_int(c->node, "deterministic", 0);
  struct random_source source = random_stateful(c);
  struct random_state state = {0, 0, 0};
  uint32_t out[2];
  for (int i = 0; i < 2; i++)
    out[i] = kb_out(&kb, DTYPE_INT64, 1, &p->borders[i]);
  expr_id none = expr_int(kb.k, DTYPE_UINT64, 0);
  struct philox stream = {expr_int(kb.k, DTYPE_UINT64, source.seed), none, expr_int(kb.k, DTYPE_UINT64, source.seed2)};
  if (!same) {
    state = random_bind(&kb, &source);
    stream = random_load(&kb, &source, &state);
  }
  expr_id n[2], m[2], three = kb_int(&kb, 3), four = kb_int(&kb, 4);
  for (int i = 0; i < 2; i++)
    n[i] = kb_dim(&kb, p->in[ROWS + i]), m[i] = kb_dim(&kb, p->out[ROWS + i]);
  expr_id second = p->pseudo ? kb_int(&kb, 1) : kb_div(&kb, kb_add(&kb, m[0], three), four);
  for (int i = 0; i < 2; i++) { /* each axis draws from a block of its own on */
    expr_id block = i ? second : kb_int(&kb, 0);
    (p->pseudo ? pseudo_random_borders : random_borders)(&kb, out[i], n[i], m[i], &stream, block);
  }
  if (!same)
    random_advance(&kb, &source, &state, kb_add(&kb, second, kb_div(&kb, kb_add(&kb, m[1], three), four)));
  p->sequence[0] = kb_value(&kb, out[0]);
  p->sequence[1] = kb_value(&kb, out[1]);
  return kb_finish_guarded(&kb);
}

/* ---- regions ---- */

struct region {
  expr_id first[2], size[2];
};

/* The region of a result: from one border to the next, which overlapping ones share; never beyond the input. */
static struct region region_of(struct kb *kb, const struct fractional *p, const expr_id *result) {
  struct region r;
  for (int i = 0; i < 2; i++) {
    uint32_t s = kb_in(kb, p->sequence[i]);
    expr_id at = result[ROWS + i], next = kb_add(kb, at, kb_int(kb, 1)), n = kb_dim(kb, p->in[ROWS + i]);
    r.first[i] = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, s, &at))));
    expr_id end = kb_add(kb, kb_index(kb, kb_load(kb, s, &next)), kb_int(kb, p->overlapping));
    r.size[i] = kb_get(kb, kb_local(kb, kb_sub(kb, expr_binary(kb->k, SCALAR_MIN, end, n), r.first[i])));
  }
  return r;
}

static void region_loops(struct kb *kb, const struct region *r, enum loop_kind loop, const expr_id *result, expr_id *at) {
  at[0] = result[0];
  at[3] = result[3];
  for (int i = 0; i < 2; i++)
    at[ROWS + i] = kb_add(kb, r->first[i], kb_for(kb, loop, r->size[i]));
}

static struct element region_count(struct kb *kb, const struct region *r, enum dtype dtype) {
  return real_element(expr_cast(kb->k, dtype, kb_mul(kb, r->size[0], r->size[1])));
}

static status fractional_pool(struct op_call *c, bool largest) {
  value_id v;
  struct fractional p;
  TRY(op_input(c, 0, &v));
  TRY(fractional_sizes(c, v, &p));
  TRY(draw_borders(c, &p));
  enum dtype dtype = op_value(c, v)->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, dtype, 4, p.out);
  expr_id index[4], at[4];
  kb_loops(&kb, LOOP_PAR, 4, p.out, index);
  struct region r = region_of(&kb, &p, index);
  struct accumulator acc = acc_begin(&kb, largest ? kb_limit(&kb, dtype, false) : f_const(&kb.f, 0));
  region_loops(&kb, &r, LOOP_SEQ, index, at);
  struct element e = kb_load(&kb, a, at), old = acc_get(&kb, &acc);
  acc_set(&kb, &acc, largest ? f_select(&kb.f, f_binary(&kb.f, SCALAR_LT, old, e), e, old) : f_binary(&kb.f, SCALAR_ADD, old, e));
  kb_close(&kb, 2);
  struct element result = acc_get(&kb, &acc);
  kb_store(&kb, o, index, largest ? result : f_binary(&kb.f, SCALAR_DIV, result, region_count(&kb, &r, dtype)));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  op_set_output(c, 1, p.sequence[0]);
  op_set_output(c, 2, p.sequence[1]);
  return kb_finish_guarded(&kb);
}
status build_fractional_max_pool(struct op_call *c) { return fractional_pool(c, true); }
status build_fractional_avg_pool(struct op_call *c) { return fractional_pool(c, false); }

/* ---- gradients ---- */

/* The borders are inputs here, and may be anything. */
static status given_borders(struct op_call *c, uint32_t first, struct fractional *p) {
  for (uint32_t i = 0; i < 2; i++) {
    TRY(op_input(c, first + i, &p->sequence[i]));
    struct flow_value s = *op_value(c, p->sequence[i]);
    if (s.rank != 1)
      return fail(INVALID_ARGUMENT, "a pooling sequence must be a vector, received shape %s", op_shape_text(c, s.rank, s.dims));
    p->borders[i] = s.dims[0];
    TRY(op_require_le(c, op_add(c, p->out[ROWS + i], op_dim(c, 1)), s.dims[0],
                      "a pooling sequence must have at least %d elements, but got %d"));
  }
  p->overlapping = node_attr_int(c->node, "overlapping", 0);
  return OK;
}

static void check_region(struct kb *kb, const struct region *r) {
  for (int i = 0; i < 2; i++) {
    expr_id good = kb_and(kb, kb_le(kb, kb_int(kb, 0), r->first[i]), kb_le(kb, kb_int(kb, 0), kb_add(kb, r->first[i], r->size[i])));
    kb_check(kb, good, INVALID_ARGUMENT, "pooling sequence values must not be negative, got %d", r->first[i], NO_EXPR);
  }
}

/* orig_input, orig_output, out_backprop, the two sequences: the gradient goes to the first of the largest of each region. */
status build_fractional_max_pool_grad(struct op_call *c) {
  value_id in[3];
  struct fractional p = {0};
  for (uint32_t i = 0; i < 3; i++) {
    TRY(op_input(c, i, &in[i]));
    struct flow_value x = *op_value(c, in[i]);
    if (x.rank != 4)
      return fail(INVALID_ARGUMENT, "orig_input, orig_output and out_backprop must be of rank 4, got %s", op_shape_text(c, x.rank, x.dims));
    memcpy(i == 0 ? p.in : p.out, x.dims, sizeof p.in);
    if (i < 2)
      TRY(op_require_le(c, op_dim(c, 1), op_count(c, 4, x.dims), "orig_input and orig_output must not be empty"));
  }
  for (int i = 0; i < 4; i++) {
    TRY(op_equal_dims(c, op_value(c, in[1])->dims[i], p.out[i], "orig_output and out_backprop"));
    if (i == 0 || i == 3)
      TRY(op_equal_dims(c, p.in[i], p.out[i], "orig_input and orig_output"));
  }
  TRY(given_borders(c, 3, &p));
  TRY(op_require_le(c, op_mul(c, p.borders[0], p.borders[1]), op_count(c, 4, p.in),
                    "Pooling region has more elements (%d) than the input tensor (%d)"));
  enum dtype dtype = op_value(c, in[0])->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t a = kb_in(&kb, in[0]), y = kb_in(&kb, in[1]), g = kb_in(&kb, in[2]), o = kb_out(&kb, dtype, 4, p.in);
  kb_fill(&kb, o, 4, p.in, f_const(&kb.f, 0));
  expr_id index[4], at[4], place[4];
  for (int i = 0; i < 4; i++)
    index[i] = kb_for_dim(&kb, i == ROWS || i == COLUMNS ? LOOP_SEQ : LOOP_PAR, p.out[i]);
  struct region r = region_of(&kb, &p, index);
  check_region(&kb, &r);
  struct accumulator best = acc_begin(&kb, kb_limit(&kb, dtype, false));
  uint32_t where[2] = {kb_local(&kb, kb_int(&kb, -1)), kb_local(&kb, kb_int(&kb, -1))};
  region_loops(&kb, &r, LOOP_SEQ, index, at);
  struct accumulator e = acc_begin(&kb, kb_load(&kb, a, at));
  expr_id none = kb_lt(&kb, kb_get(&kb, where[0]), kb_int(&kb, 0));
  kb_if(&kb, kb_or(&kb, f_binary(&kb.f, SCALAR_LT, acc_get(&kb, &best), acc_get(&kb, &e)).re, none));
  acc_set(&kb, &best, acc_get(&kb, &e));
  for (int i = 0; i < 2; i++)
    kb_set(&kb, where[i], at[ROWS + i]);
  kb_close(&kb, 3);
  place[0] = index[0];
  place[3] = index[3];
  for (int i = 0; i < 2; i++)
    place[ROWS + i] = kb_get(&kb, where[i]);
  kb_check(&kb, kb_le(&kb, kb_int(&kb, 0), place[ROWS]), INVALID_ARGUMENT, "a pooling region is empty", NO_EXPR, NO_EXPR);
  struct element same = f_binary(&kb.f, SCALAR_EQ, acc_get(&kb, &best), kb_load(&kb, y, index));
  kb_check(&kb, same.re, INVALID_ARGUMENT, "orig_output is not what the pooling of orig_input gives", NO_EXPR, NO_EXPR);
  kb_store(&kb, o, place, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, o, place), kb_load(&kb, g, index)));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* orig_input_tensor_shape, out_backprop, the two sequences: shared out evenly over each region, summed in double. */
status build_fractional_avg_pool_grad(struct op_call *c) {
  value_id shape, gradient;
  struct fractional p = {0};
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &shape));
  TRY(op_input(c, 1, &gradient));
  struct flow_value g = *op_value(c, gradient);
  TRY(op_sizes(c, shape, "orig_input_tensor_shape", 4, dims));
  if (g.rank != 4)
    return fail(INVALID_ARGUMENT, "out_backprop must be 4-dimensional: %s", op_shape_text(c, g.rank, g.dims));
  memcpy(p.in, dims, sizeof p.in);
  memcpy(p.out, g.dims, sizeof p.out);
  for (int i = 0; i < 4; i++) {
    TRY(op_require_le(c, op_dim(c, 1), p.in[i], "a dimension of the input must not be 0"));
    TRY(op_require_le(c, op_dim(c, 1), p.out[i], "out_backprop must be positive for all dimensions"));
    if (i == 0 || i == 3)
      TRY(op_equal_dims(c, p.in[i], p.out[i], "orig_input_tensor_shape and out_backprop"));
  }
  TRY(given_borders(c, 2, &p));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  uint32_t a = kb_in(&kb, gradient), o = kb_out(&kb, g.dtype, 4, p.in), sums = kb_scratch(&kb, DTYPE_DOUBLE, 4, p.in);
  kb_fill(&kb, sums, 4, p.in, f_const(&kb.f, 0));
  expr_id index[4], at[4];
  for (int i = 0; i < 4; i++)
    index[i] = kb_for_dim(&kb, i == ROWS || i == COLUMNS ? LOOP_SEQ : LOOP_PAR, p.out[i]);
  struct region r = region_of(&kb, &p, index);
  check_region(&kb, &r);
  struct element share = f_binary(&kb.f, SCALAR_DIV, load_as(&kb, DTYPE_DOUBLE, a, index), region_count(&kb, &r, DTYPE_DOUBLE));
  region_loops(&kb, &r, LOOP_SEQ, index, at);
  kb_store(&kb, sums, at, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, sums, at), share));
  kb_close(&kb, 6);
  kb_loops(&kb, LOOP_PAR, 4, p.in, at);
  store_as(&kb, o, at, kb_load(&kb, sums, at));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
