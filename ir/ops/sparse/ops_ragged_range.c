/* ops_ragged_range.c: lists whose rows are computed: RaggedRange, and ComputeAccidentalHits, which finds sampled classes
 * among true ones. */
#include <string.h>

#include "ir/ops/arrange.h"

/* ---- RaggedRange: rows of start, start + delta, ... below the limit; scalars hold for every row ---- */

struct ranges {
  value_id v[3]; /* starts, limits, deltas */
  dim rows;
  enum dtype dtype;
};

static expr_id range_part(struct kb *kb, const struct ranges *r, int which, expr_id row) {
  uint32_t in = kb_in(kb, r->v[which]);
  struct flow_value x = *op_value(kb->c, r->v[which]);
  expr_id place = x.rank == 0 || op_dim_value(kb->c, x.dims[0]) == 1 ? kb_int(kb, 0) : row;
  return kb_get(kb, kb_local(kb, kb_load(kb, in, &place).re));
}

/* How many elements a row has: ceil(|limit - start| / |delta|), of a difference that may wrap, when delta leads from start to limit. */
static expr_id range_count(struct kb *kb, const struct ranges *r, expr_id row) {
  enum dtype dtype = r->dtype;
  expr_id start = range_part(kb, r, 0, row), limit = range_part(kb, r, 1, row), delta = range_part(kb, r, 2, row);
  struct element zero = f_const_as(&kb->f, dtype, 0), one = f_const_as(&kb->f, dtype, 1);
  kb_check(kb, kb_ne(kb, delta, zero.re), INVALID_ARGUMENT, "Requires delta != 0", NO_EXPR, NO_EXPR);
  expr_id up = kb_and(kb, kb_lt(kb, zero.re, delta), kb_lt(kb, start, limit)),
          down = kb_and(kb, kb_lt(kb, delta, zero.re), kb_lt(kb, limit, start));
  expr_id span = expr_unary(kb->k, SCALAR_ABS, kb_sub(kb, limit, start)), step = expr_unary(kb->k, SCALAR_ABS, delta), count;
  if (dtype_is_float(dtype))
    count = expr_unary(kb->k, SCALAR_CEIL, expr_binary(kb->k, SCALAR_DIV, span, step));
  else
    count = kb_add(kb, kb_div(kb, span, step), kb_select(kb, kb_ne(kb, kb_mod(kb, span, step), zero.re), one.re, zero.re));
  return kb_select(kb, kb_or(kb, up, down), expr_cast(kb->k, DTYPE_INT64, count), kb_int(kb, 0));
}

static status range_splits(struct op_call *c, const struct ranges *r, dim *total) {
  enum dtype dtype = op_output_dtype(c, 0);
  dim length = op_add(c, r->rows, op_dim(c, 1));
  struct kb kb;
  kb_begin(&kb, c, r->dtype);
  uint32_t out = kb_out(&kb, dtype, 1, &length), sum = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id zero = kb_int(&kb, 0);
  uint32_t end = kb_local(&kb, zero);
  kb_store(&kb, out, &zero, f_const_as(&kb.f, dtype, 0));
  expr_id row = kb_for_dim(&kb, LOOP_SEQ, r->rows), next = kb_add(&kb, row, kb_int(&kb, 1));
  kb_set(&kb, end, kb_add(&kb, kb_get(&kb, end), range_count(&kb, r, row)));
  kb_check(&kb, kb_in_range(&kb, kb_get(&kb, end), kb_int(&kb, LIMIT_ELEMENTS)), INVALID_ARGUMENT,
           "Requires ((limit - start) / delta) to be smaller: %d elements", kb_get(&kb, end), NO_EXPR);
  kb_store(&kb, out, &next, real_element(expr_cast(kb.k, dtype, kb_get(&kb, end))));
  kb_close(&kb, 1);
  kb_store(&kb, sum, NULL, real_element(kb_get(&kb, end)));
  op_set_output(c, 0, kb_value(&kb, out));
  value_id v = kb_value(&kb, sum);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, total);
}

status build_ragged_range(struct op_call *c) {
  struct ranges r = {.rows = op_dim(c, 1)};
  dim total;
  for (uint32_t i = 0; i < 3; i++) {
    TRY(op_input(c, i, &r.v[i]));
    struct flow_value x = *op_value(c, r.v[i]);
    if (x.rank > 1)
      return fail(INVALID_ARGUMENT, "%s must be a scalar or vector", c->node->def->inputs[i].name);
    if (x.rank == 1 && op_dim_value(c, r.rows) == 1)
      r.rows = x.dims[0];
    else if (x.rank == 1)
      TRY(op_equal_dims(c, r.rows, x.dims[0], "starts, limits, and deltas must have the same shape"));
  }
  r.dtype = op_value(c, r.v[0])->dtype;
  TRY(range_splits(c, &r, &total));
  struct kb kb;
  kb_begin(&kb, c, r.dtype);
  uint32_t out = kb_out(&kb, r.dtype, 1, &total), next = kb_local(&kb, kb_int(&kb, 0));
  expr_id row = kb_for_dim(&kb, LOOP_SEQ, r.rows), count = kb_get(&kb, kb_local(&kb, range_count(&kb, &r, row)));
  uint32_t value = kb_local(&kb, range_part(&kb, &r, 0, row));
  expr_id delta = range_part(&kb, &r, 2, row);
  kb_for(&kb, LOOP_SEQ, count);
  expr_id to = kb_get(&kb, next);
  kb_store(&kb, out, &to, real_element(kb_get(&kb, value)));
  kb_set(&kb, value, kb_add(&kb, kb_get(&kb, value), delta));
  kb_set(&kb, next, kb_add(&kb, to, kb_int(&kb, 1)));
  kb_close(&kb, 2);
  op_set_output(c, 1, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- ComputeAccidentalHits ---- */

/* Visits every true class that was sampled, with its (last) place among the samples: opens loops and an if; the caller closes 3
 * blocks. */
static void each_hit(struct kb *kb, value_id classes, value_id sampled, expr_id *row, expr_id *place) {
  struct flow_value t = *op_value(kb->c, classes), s = *op_value(kb->c, sampled);
  uint32_t in = kb_in(kb, classes), samples = kb_in(kb, sampled);
  expr_id at[2];
  kb_loops(kb, LOOP_SEQ, 2, t.dims, at);
  expr_id wanted = kb_get(kb, kb_local(kb, kb_load(kb, in, at).re));
  *row = at[0];
  uint32_t last = kb_local(kb, kb_int(kb, -1));
  expr_id i = kb_for_dim(kb, LOOP_SEQ, s.dims[0]);
  kb_set(kb, last, expr_select(kb->k, kb_eq(kb, kb_load(kb, samples, &i).re, wanted), i, kb_get(kb, last)));
  kb_close(kb, 1);
  *place = kb_get(kb, last);
  kb_if(kb, kb_le(kb, kb_int(kb, 0), *place));
}

status build_compute_accidental_hits(struct op_call *c) {
  value_id classes, sampled;
  TRY(op_input(c, 0, &classes));
  TRY(op_input(c, 1, &sampled));
  struct flow_value t = *op_value(c, classes), s = *op_value(c, sampled);
  if (t.rank != 2 || s.rank != 1)
    return fail(INVALID_ARGUMENT, t.rank != 2 ? "true_candidates must be a batch_size * num_true matrix"
                                              : "sampled_candidates must be a vector, which is typically an output from CandidateSampler");
  TRY(op_equal_dims(c, t.dims[1], op_dim(c, node_attr_int(c->node, "num_true", 1)), "true_candidates and num_true"));
  expr_id row, place;
  dim total;
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t sum = kb_out(&kb, DTYPE_INT64, 0, NULL), count = kb_local(&kb, kb_int(&kb, 0));
  each_hit(&kb, classes, sampled, &row, &place);
  kb_set(&kb, count, kb_add(&kb, kb_get(&kb, count), kb_int(&kb, 1)));
  kb_close(&kb, 3);
  kb_store(&kb, sum, NULL, real_element(kb_get(&kb, count)));
  value_id v = kb_value(&kb, sum);
  TRY(kb_finish_guarded(&kb));
  TRY(op_bound_dims(c, v, 1, &total));
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t rows = kb_out(&kb, DTYPE_INT32, 1, &total), ids = kb_out(&kb, DTYPE_INT64, 1, &total),
           weights = kb_out(&kb, DTYPE_FLOAT, 1, &total);
  count = kb_local(&kb, kb_int(&kb, 0));
  each_hit(&kb, classes, sampled, &row, &place);
  expr_id to = kb_get(&kb, count);
  kb_store(&kb, rows, &to, real_element(expr_cast(kb.k, DTYPE_INT32, row)));
  kb_store(&kb, ids, &to, real_element(place));
  kb_store(&kb, weights, &to, kb_limit(&kb, DTYPE_FLOAT, false));
  kb_set(&kb, count, kb_add(&kb, to, kb_int(&kb, 1)));
  kb_close(&kb, 3);
  op_set_output(c, 0, kb_value(&kb, rows));
  op_set_output(c, 1, kb_value(&kb, ids));
  op_set_output(c, 2, kb_value(&kb, weights));
  return kb_finish_guarded(&kb);
}
