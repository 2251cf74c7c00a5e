/* ops_select.c: results whose size depends on the data, and their inverses: Where, DynamicPartition, DynamicStitch,
 * SparseToDense. A first kernel counts; its result becomes a size; a second one fills. */
#include <string.h>

#include "ir/ops/sparse/sparse.h"

/* ---- Where ---- */

static expr_id is_nonzero(struct kb *kb, enum dtype dtype, struct element e) {
  if (dtype == DTYPE_BOOL)
    return e.re;
  return f_binary(&kb->f, SCALAR_NE, e, f_const_as(&kb->f, dtype, 0)).re;
}

static status count_nonzero(struct op_call *c, value_id v, dim *out) {
  struct flow_value x = *op_value(c, v);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), o = kb_out(&kb, DTYPE_INT64, 0, NULL), count = kb_local(&kb, kb_int(&kb, 0));
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_SEQ, x.rank, x.dims, at);
  expr_id one = expr_cast(kb.k, DTYPE_INT64, is_nonzero(&kb, x.dtype, kb_load(&kb, in, at)));
  kb_set(&kb, count, kb_add(&kb, kb_get(&kb, count), one));
  kb_close(&kb, x.rank);
  kb_store(&kb, o, NULL, real_element(kb_get(&kb, count)));
  value_id total = kb_value(&kb, o);
  TRY(kb_finish(&kb));
  return op_bound_dims(c, total, 1, out);
}

status build_where(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 1)
    return fail(INVALID_ARGUMENT, "WhereOp : Unhandled input dimensions: 0");
  dim dims[2] = {NO_DIM, op_dim(c, x.rank)};
  TRY(count_nonzero(c, v, &dims[0]));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, DTYPE_INT64, 2, dims), next = kb_local(&kb, kb_int(&kb, 0));
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_SEQ, x.rank, x.dims, at);
  kb_if(&kb, is_nonzero(&kb, x.dtype, kb_load(&kb, in, at)));
  for (int d = 0; d < x.rank; d++) {
    expr_id to[2] = {kb_get(&kb, next), kb_int(&kb, d)};
    kb_store(&kb, out, to, real_element(at[d]));
  }
  kb_set(&kb, next, kb_add(&kb, kb_get(&kb, next), kb_int(&kb, 1)));
  kb_close(&kb, x.rank + 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}

/* ---- DynamicPartition ---- */

/* counts [parts], and the rows' numbers ordered by part (rows of a part keep their order). */
static status sort_by_part(struct op_call *c, value_id parts, dim rows, int64_t count, value_id *counts, value_id *order) {
  dim total = op_dim(c, count);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, parts), sizes = kb_out(&kb, DTYPE_INT64, 1, &total), sorted = kb_out(&kb, DTYPE_INT64, 1, &rows);
  uint32_t next = kb_scratch(&kb, DTYPE_INT64, 1, &total);
  expr_id one = kb_int(&kb, 1), n = kb_int(&kb, count);
  kb_fill(&kb, sizes, 1, &total, real_element(kb_int(&kb, 0)));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, rows), p = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, in, &i))));
  kb_check(&kb, kb_in_range(&kb, p, n), INVALID_ARGUMENT,
           arena_printf(op_arena(c), "partitions[%%d] = %%d is not in [0, %lld)", (long long)count), i, p);
  kb_store(&kb, sizes, &p, real_element(kb_add(&kb, kb_load(&kb, sizes, &p).re, one)));
  kb_close(&kb, 1);
  uint32_t sum = kb_local(&kb, kb_int(&kb, 0));
  expr_id k = kb_for(&kb, LOOP_SEQ, n);
  kb_store(&kb, next, &k, real_element(kb_get(&kb, sum)));
  kb_set(&kb, sum, kb_add(&kb, kb_get(&kb, sum), kb_load(&kb, sizes, &k).re));
  kb_close(&kb, 1);
  expr_id j = kb_for_dim(&kb, LOOP_SEQ, rows), q = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, in, &j))));
  expr_id to = kb_get(&kb, kb_local(&kb, kb_load(&kb, next, &q).re));
  kb_store(&kb, sorted, &to, real_element(j));
  kb_store(&kb, next, &q, real_element(kb_add(&kb, to, one)));
  kb_close(&kb, 1);
  *counts = kb_value(&kb, sizes);
  *order = kb_value(&kb, sorted);
  return kb_finish(&kb);
}

status build_dynamic_partition(struct op_call *c) {
  value_id data, parts, counts, order;
  TRY(op_input(c, 0, &data));
  TRY(op_input(c, 1, &parts));
  struct flow_value x = *op_value(c, data), p = *op_value(c, parts);
  int64_t count = node_attr_int(c->node, "num_partitions", 1);
  bool fits = p.rank <= x.rank;
  for (int d = 0; d < p.rank && fits; d++)
    fits = dim_equal(op_dims(c), p.dims[d], x.dims[d]) != 0;
  if (!fits)
    return fail(INVALID_ARGUMENT, "data.shape must start with partitions.shape, got data.shape = %s, partitions.shape = %s",
                op_shape_text(c, x.rank, x.dims), op_shape_text(c, p.rank, p.dims));
  for (int d = 0; d < p.rank; d++)
    TRY(op_equal_dims(c, p.dims[d], x.dims[d], "data.shape must start with partitions.shape"));
  int rank = x.rank - p.rank + 1;
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", rank);
  dim dims[LIMIT_RANK] = {op_count(c, p.rank, p.dims)}, *sizes, offset = op_dim(c, 0);
  memcpy(dims + 1, x.dims + p.rank, sizeof *dims * (size_t)(rank - 1));
  data = op_alias(c, data, x.dtype, rank, dims);
  TRY(sort_by_part(c, op_alias(c, parts, p.dtype, 1, dims), dims[0], count, &counts, &order));
  int known;
  TRY(op_elements(c, counts, &sizes, &known));
  for (int i = 0; i < known; i++) {
    value_id out;
    TRY(op_pick_rows(c, data, order, offset, sizes[i], &out));
    op_set_output(c, (uint32_t)i, out);
    offset = op_add(c, offset, sizes[i]);
  }
  return OK;
}

/* ---- DynamicStitch ---- */

struct stitch {
  int count, inner; /* inputs; dimensions of a row */
  value_id *indices, *data;
  dim dims[LIMIT_RANK + 1];
};

static status stitch_inputs(struct op_call *c, struct stitch *s) {
  s->count = (int)node_attr_int(c->node, "N", 1);
  s->indices = ARENA_ARRAY(op_arena(c), value_id, s->count + 1);
  s->data = ARENA_ARRAY(op_arena(c), value_id, s->count + 1);
  for (int i = 0; i < s->count; i++) {
    TRY(op_input(c, (uint32_t)i, &s->indices[i]));
    TRY(op_input(c, (uint32_t)(s->count + i), &s->data[i]));
    struct flow_value x = *op_value(c, s->data[i]), n = *op_value(c, s->indices[i]), first = *op_value(c, s->data[0]);
    int inner = x.rank - n.rank;
    s->inner = i ? s->inner : inner;
    bool fits = inner >= 0 && inner == s->inner && inner < LIMIT_RANK;
    for (int d = 0; d < n.rank && fits; d++)
      fits = dim_equal(op_dims(c), n.dims[d], x.dims[d]) != 0;
    for (int d = 0; d < inner && fits; d++)
      fits = dim_equal(op_dims(c), x.dims[n.rank + d], first.dims[first.rank - inner + d]) != 0;
    if (!fits)
      return fail(INVALID_ARGUMENT,
                  "data[%d].shape = %s does not start with indices[%d].shape = %s, or its rows differ from those of data[0]", i,
                  op_shape_text(c, x.rank, x.dims), i, op_shape_text(c, n.rank, n.dims));
    for (int d = 0; d < n.rank; d++)
      TRY(op_equal_dims(c, n.dims[d], x.dims[d], "data and indices"));
    for (int d = 0; d < inner; d++)
      TRY(op_equal_dims(c, x.dims[n.rank + d], first.dims[first.rank - inner + d], "rows of data"));
    memcpy(s->dims + 1, first.dims + first.rank - inner, sizeof *s->dims * (size_t)inner);
  }
  return OK;
}

/* The largest index plus one. */
static status stitch_rows(struct op_call *c, struct stitch *s) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 0, NULL), rows = kb_local(&kb, kb_int(&kb, 0));
  for (int i = 0; i < s->count; i++) {
    struct flow_value n = *op_value(c, s->indices[i]);
    uint32_t in = kb_in(&kb, s->indices[i]);
    expr_id at[LIMIT_RANK];
    kb_loops(&kb, LOOP_SEQ, n.rank, n.dims, at);
    expr_id after = kb_add(&kb, kb_index(&kb, kb_load(&kb, in, at)), kb_int(&kb, 1));
    kb_set(&kb, rows, expr_binary(kb.k, SCALAR_MAX, kb_get(&kb, rows), after));
    kb_close(&kb, n.rank);
  }
  kb_store(&kb, o, NULL, real_element(kb_get(&kb, rows)));
  value_id v = kb_value(&kb, o);
  TRY(kb_finish(&kb));
  return op_bound_dims(c, v, 1, &s->dims[0]);
}

static void stitch_input(struct kb *kb, const struct stitch *s, int i, uint32_t out) {
  struct flow_value n = *op_value(kb->c, s->indices[i]);
  uint32_t in = kb_in(kb, s->data[i]), places = kb_in(kb, s->indices[i]);
  expr_id at[LIMIT_RANK], to[LIMIT_RANK], flat = kb_int(kb, 0);
  kb_loops(kb, LOOP_SEQ, n.rank, n.dims, at);
  for (int d = 0; d < n.rank; d++)
    flat = kb_add(kb, kb_mul(kb, flat, kb_dim(kb, n.dims[d])), at[d]);
  to[0] = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, places, at))));
  kb_check(kb, kb_in_range(kb, to[0], kb_dim(kb, s->dims[0])), INVALID_ARGUMENT,
           arena_printf(op_arena(kb->c), "indices[%d][%%d] = %%d is out of range", i), flat, to[0]);
  kb_loops(kb, LOOP_PAR, s->inner, s->dims + 1, at + n.rank);
  memcpy(to + 1, at + n.rank, sizeof *at * (size_t)s->inner);
  kb_store(kb, out, to, kb_load(kb, in, at));
  kb_close(kb, n.rank + s->inner);
}

status build_dynamic_stitch(struct op_call *c) {
  struct stitch s = {0};
  TRY(stitch_inputs(c, &s));
  TRY(stitch_rows(c, &s));
  enum dtype dtype = op_value(c, s.data[0])->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t out = kb_out(&kb, dtype, s.inner + 1, s.dims);
  kb_fill(&kb, out, s.inner + 1, s.dims, kb_zero(&kb, dtype));
  for (int i = 0; i < s.count; i++)
    stitch_input(&kb, &s, i, out);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- SparseToDense ---- */

struct sparse_to_dense {
  value_id indices, values, filler;
  int index_rank, rank;
  dim rows, dims[LIMIT_RANK];
};

static status check_sparse(struct op_call *c, struct sparse_to_dense *s) {
  struct flow_value i = *op_value(c, s->indices), v = *op_value(c, s->values), d = *op_value(c, s->filler);
  s->index_rank = i.rank;
  s->rows = i.rank ? i.dims[0] : op_dim(c, 1);
  if (i.rank > 2)
    return fail(INVALID_ARGUMENT, "sparse_indices should be a scalar, vector, or matrix, got shape %s", op_shape_text(c, i.rank, i.dims));
  dim wide = i.rank == 2 ? i.dims[1] : op_dim(c, 1);
  if (dim_equal(op_dims(c), wide, op_dim(c, s->rank)) == 0)
    return fail(INVALID_ARGUMENT, "output_shape has incorrect number of elements: %d should be: %s", s->rank, dim_text(op_dims(c), wide));
  TRY(op_equal_dims(c, wide, op_dim(c, s->rank), "the number of index elements and of dimensions"));
  if (v.rank > 1 || d.rank != 0)
    return fail(INVALID_ARGUMENT, v.rank > 1 ? "sparse_values should be a scalar or vector" : "default_value should be a scalar.");
  return v.rank == 1 ? op_equal_dims(c, v.dims[0], s->rows, "sparse_values and sparse_indices") : OK;
}

/* Within bounds, the order of indices is that of their numbers in row-major order. */
static void store_sparse(struct kb *kb, const struct sparse_to_dense *s, uint32_t out, bool in_order) {
  uint32_t indices = kb_in(kb, s->indices), values = kb_in(kb, s->values), previous = kb_local(kb, kb_int(kb, -1));
  expr_id row = kb_for_dim(kb, LOOP_SEQ, s->rows), to[LIMIT_RANK], flat = kb_int(kb, 0), inside = expr_int(kb->k, DTYPE_BOOL, 1);
  for (int d = 0; d < s->rank; d++) {
    expr_id from[2] = {row, kb_int(kb, d)}, n = kb_dim(kb, s->dims[d]);
    to[d] = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, indices, from))));
    inside = kb_and(kb, inside, kb_in_range(kb, to[d], n));
    flat = kb_add(kb, kb_mul(kb, flat, n), to[d]);
  }
  const char *shape = op_shape_text(kb->c, s->rank, s->dims);
  kb_check(kb, inside, INVALID_ARGUMENT, arena_printf(op_arena(kb->c), "indices[%%d] is out of bounds: need 0 <= index < %s", shape), row,
           NO_EXPR);
  if (in_order) {
    kb_check(kb, kb_ne(kb, kb_get(kb, previous), flat), INVALID_ARGUMENT, "indices[%d] is repeated", row, NO_EXPR);
    kb_check(kb, kb_lt(kb, kb_get(kb, previous), flat), INVALID_ARGUMENT, "indices[%d] is out of order", row, NO_EXPR);
    kb_set(kb, previous, flat);
  }
  kb_store(kb, out, to, kb_load(kb, values, &row));
  kb_close(kb, 1);
}

status build_sparse_to_dense(struct op_call *c) {
  struct sparse_to_dense s = {0};
  value_id shape;
  TRY(op_input(c, 0, &s.indices));
  TRY(op_input(c, 1, &shape));
  TRY(op_input(c, 2, &s.values));
  TRY(op_input(c, 3, &s.filler));
  TRY(op_shape_dims(c, shape, "output_shape", &s.rank, s.dims));
  TRY(check_sparse(c, &s));
  enum dtype dtype = op_value(c, s.values)->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t filler = kb_in(&kb, s.filler), out = kb_out(&kb, dtype, s.rank, s.dims);
  kb_fill(&kb, out, s.rank, s.dims, kb_load(&kb, filler, NULL));
  store_sparse(&kb, &s, out, node_attr_int(c->node, "validate_indices", 1) != 0);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
