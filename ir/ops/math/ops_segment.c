/* ops_segment.c: rows reduced by the segment they belong to: Segment*, UnsortedSegment*, SparseSegment* and gradients.
 *
 * Rows are taken in order; the places of a row are independent. The number of segments of the sorted forms is the last id
 * plus one: a kernel of its own, whose result becomes a size. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/ops/sparse/sparse.h"

static struct element start_value(struct kb *kb, enum dtype dtype, enum combine how) {
  if (how == COMBINE_MAX || how == COMBINE_MIN)
    return kb_limit(kb, dtype, how == COMBINE_MIN);
  return f_const_as(&kb->f, dtype, how == COMBINE_MUL);
}

/* [count] + the dims of v from `from` on */
static status row_dims(struct op_call *c, value_id v, int from, dim count, int *rank, dim *dims) {
  struct flow_value x = *op_value(c, v);
  if (x.rank < from || x.rank - from + 1 > LIMIT_RANK)
    return fail(INVALID_ARGUMENT, "data must be at least rank %d, not shape %s", from, op_shape_text(c, x.rank, x.dims));
  dims[0] = count;
  memcpy(dims + 1, x.dims + from, sizeof *dims * (size_t)(x.rank - from));
  *rank = x.rank - from + 1;
  return OK;
}

static status count_input(struct op_call *c, uint32_t i, const char *what, dim *out) {
  value_id v;
  TRY(op_input(c, i, &v));
  if (op_value(c, v)->rank != 0)
    return fail(INVALID_ARGUMENT, "%s should be a scalar, not shape %s", what,
                op_shape_text(c, op_value(c, v)->rank, op_value(c, v)->dims));
  struct kb guard;
  guard_begin(&guard, c);
  expr_id n = kb_element(&guard, v, 0);
  kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), n), INVALID_ARGUMENT,
           arena_printf(op_arena(c), "Input %s == %%d must not be negative.", what), n, NO_EXPR);
  TRY(guard_finish(&guard));
  return op_bound_dims(c, v, 1, out);
}

/* ---- UnsortedSegment ---- */

status build_unsorted_segment(struct op_call *c) {
  value_id v, ids;
  dim count, dims[LIMIT_RANK + 1];
  int rank;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &ids));
  TRY(count_input(c, 2, "num_segments", &count));
  struct flow_value x = *op_value(c, v), s = *op_value(c, ids);
  bool fits = s.rank <= x.rank;
  for (int d = 0; d < s.rank && fits; d++)
    fits = dim_equal(op_dims(c), s.dims[d], x.dims[d]) != 0;
  if (!fits)
    return fail(INVALID_ARGUMENT, "data.shape = %s does not start with segment_ids.shape = %s", op_shape_text(c, x.rank, x.dims),
                op_shape_text(c, s.rank, s.dims));
  for (int d = 0; d < s.rank; d++)
    TRY(op_equal_dims(c, s.dims[d], x.dims[d], "data.shape must start with segment_ids.shape"));
  TRY(row_dims(c, v, s.rank, count, &rank, dims));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), segments = kb_in(&kb, ids), out = kb_out(&kb, x.dtype, rank, dims);
  enum combine how = OP_ROW(c, combine_row)->how;
  kb_fill(&kb, out, rank, dims, start_value(&kb, x.dtype, how));
  expr_id at[LIMIT_RANK], to[LIMIT_RANK], flat = kb_int(&kb, 0);
  kb_loops(&kb, LOOP_SEQ, s.rank, s.dims, at);
  to[0] = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, segments, at))));
  for (int d = 0; d < s.rank; d++)
    flat = kb_add(&kb, kb_mul(&kb, flat, kb_dim(&kb, s.dims[d])), at[d]);
  expr_id size = kb_dim(&kb, count);
  kb_check_index(&kb, kb_or_empty(&kb, kb_lt(&kb, to[0], size), rank - 1, dims + 1), "segment_ids[%d] = %d is out of range [0, %d)", flat,
                 to[0], size);
  kb_if(&kb, kb_le(&kb, kb_int(&kb, 0), to[0]));
  kb_loops(&kb, LOOP_PAR, rank - 1, dims + 1, at + s.rank);
  memcpy(to + 1, at + s.rank, sizeof *at * (size_t)(rank - 1));
  kb_store(&kb, out, to, kb_combine_last(&kb, how, kb_load(&kb, out, to), kb_load(&kb, in, at)));
  kb_close(&kb, x.rank + 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- sorted segments ---- */

/* The last id plus one; 0 without ids. */
static status last_segment(struct op_call *c, value_id ids, dim *out) {
  struct flow_value s = *op_value(c, ids);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, ids), o = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id n = kb_dim(&kb, s.dims[0]), last = kb_sub(&kb, n, kb_int(&kb, 1));
  kb_if(&kb, kb_lt(&kb, kb_int(&kb, 0), n));
  expr_id id = kb_index(&kb, kb_load(&kb, in, &last));
  kb_check(&kb, kb_le(&kb, kb_int(&kb, 0), id), INVALID_ARGUMENT, "segment ids must be >= 0", NO_EXPR, NO_EXPR);
  kb_store(&kb, o, NULL, real_element(kb_add(&kb, id, kb_int(&kb, 1))));
  kb_else(&kb);
  kb_store(&kb, o, NULL, real_element(kb_int(&kb, 0)));
  kb_close(&kb, 1);
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, out);
}

struct segments {
  enum combine how;
  value_id data, ids, indices; /* indices: NO_VALUE when row i of data belongs to id i */
  int rank;
  dim dims[LIMIT_RANK]; /* of the result */
};

static struct element divided_by_count(struct kb *kb, enum combine how, enum dtype dtype, struct element sum, expr_id count) {
  enum dtype part = dtype_real(dtype);
  if (how == COMBINE_SQRTN)
    count = expr_unary(kb->k, SCALAR_SQRT, expr_cast(kb->k, DTYPE_DOUBLE, count));
  return f_binary(&kb->f, SCALAR_DIV, sum, f_cast(&kb->f, dtype, real_element(expr_cast(kb->k, part, count))));
}

/* Divides the finished rows: at the last id of a segment. */
static void finish_segment(struct kb *kb, const struct segments *s, uint32_t ids, uint32_t out, expr_id r, expr_id id, expr_id count) {
  dim length = op_value(kb->c, s->ids)->dims[0];
  expr_id next = kb_add(kb, r, kb_int(kb, 1)), to[LIMIT_RANK] = {id};
  uint32_t last = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_if(kb, kb_lt(kb, next, kb_dim(kb, length)));
  kb_set(kb, last, kb_ne(kb, kb_index(kb, kb_load(kb, ids, &next)), id));
  kb_close(kb, 1);
  kb_if(kb, kb_get(kb, last));
  kb_loops(kb, LOOP_PAR, s->rank - 1, s->dims + 1, to + 1);
  enum dtype dtype = op_value(kb->c, s->data)->dtype;
  kb_store(kb, out, to, divided_by_count(kb, s->how, dtype, kb_load(kb, out, to), count));
  kb_close(kb, s->rank);
}

static expr_id data_row(struct kb *kb, const struct segments *s, expr_id r) {
  if (s->indices == NO_VALUE)
    return r;
  dim rows = op_value(kb->c, s->data)->dims[0];
  expr_id row = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, kb_in(kb, s->indices), &r))));
  expr_id size = kb_dim(kb, rows);
  kb_check_index(kb, kb_in_range(kb, row, size), "Bad: indices[%d] == %d out of range [0, %d)", r, row, size);
  return row;
}

static status reduce_segments(struct op_call *c, const struct segments *s) {
  struct flow_value x = *op_value(c, s->data), ids = *op_value(c, s->ids);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, s->data), segments = kb_in(&kb, s->ids), out = kb_out(&kb, x.dtype, s->rank, s->dims);
  bool divides = s->how == COMBINE_MEAN || s->how == COMBINE_SQRTN;
  kb_fill(&kb, out, s->rank, s->dims, f_const_as(&kb.f, x.dtype, s->how == COMBINE_MUL));
  expr_id one = kb_int(&kb, 1), to[LIMIT_RANK], from[LIMIT_RANK];
  uint32_t previous = kb_local(&kb, kb_int(&kb, -1)), count = kb_local(&kb, kb_int(&kb, 0));
  expr_id r = kb_for_dim(&kb, LOOP_SEQ, ids.dims[0]);
  expr_id id = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, segments, &r))));
  kb_check(&kb, kb_le(&kb, kb_get(&kb, previous), id), INVALID_ARGUMENT, "segment ids are not increasing", NO_EXPR, NO_EXPR);
  kb_check(&kb, kb_in_range(&kb, id, kb_dim(&kb, s->dims[0])), INVALID_ARGUMENT,
           "Segment id %d out of range [0, %d), possibly because 'segment_ids' input is not sorted.", id, kb_dim(&kb, s->dims[0]));
  expr_id first = kb_get(&kb, kb_local(&kb, kb_ne(&kb, kb_get(&kb, previous), id)));
  kb_set(&kb, previous, id);
  kb_set(&kb, count, kb_select(&kb, first, one, kb_add(&kb, kb_get(&kb, count), one)));
  from[0] = data_row(&kb, s, r);
  to[0] = id;
  kb_loops(&kb, LOOP_PAR, s->rank - 1, s->dims + 1, to + 1);
  memcpy(from + 1, to + 1, sizeof *to * (size_t)(s->rank - 1));
  struct element row = kb_load(&kb, in, from);
  struct element sum = kb_combine_last(&kb, divides ? COMBINE_ADD : s->how, kb_load(&kb, out, to), row);
  kb_store(&kb, out, to, f_select(&kb.f, real_element(first), row, sum));
  kb_close(&kb, s->rank - 1);
  if (divides)
    finish_segment(&kb, s, segments, out, r, id, kb_get(&kb, count));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

static status check_ids(struct op_call *c, value_id ids, value_id indexed, const char *text) {
  struct flow_value s = *op_value(c, ids), x = *op_value(c, indexed);
  if (s.rank != 1 || x.rank < 1)
    return fail(INVALID_ARGUMENT, s.rank != 1 ? "segment_ids should be a vector." : "data must be at least rank 1");
  if (dim_equal(op_dims(c), s.dims[0], x.dims[0]) == 0)
    return fail(INVALID_ARGUMENT, "%s", text);
  return op_equal_dims(c, s.dims[0], x.dims[0], text);
}

status build_segment(struct op_call *c) {
  struct segments s = {.how = OP_ROW(c, combine_row)->how};
  dim count;
  TRY(op_input(c, 0, &s.data));
  TRY(op_input(c, 1, &s.ids));
  TRY(check_ids(c, s.ids, s.data, "segment_ids should be the same size as dimension 0 of input."));
  TRY(last_segment(c, s.ids, &count));
  TRY(row_dims(c, s.data, 1, count, &s.rank, s.dims));
  return reduce_segments(c, &s);
}

/* The same over rows picked by indices; the forms WithNumSegments say how many segments there are. */
status build_sparse_segment(struct op_call *c) {
  struct segments s = {.how = OP_ROW(c, combine_row)->how};
  dim count;
  TRY(op_input(c, 0, &s.data));
  TRY(op_input(c, 1, &s.indices));
  TRY(op_input(c, 2, &s.ids));
  if (op_value(c, s.indices)->rank != 1)
    return fail(INVALID_ARGUMENT, "indices should be a vector.");
  TRY(check_ids(c, s.ids, s.indices, "segment_ids and indices should have same size."));
  if (c->in_count > 3)
    TRY(count_input(c, 3, "num_segments", &count));
  else
    TRY(last_segment(c, s.ids, &count));
  TRY(row_dims(c, s.data, 1, count, &s.rank, s.dims));
  return reduce_segments(c, &s);
}

/* ---- gradients of SparseSegment: out[indices[i]] += grad[ids[i]] * scale of the segment ---- */

static expr_id segment_scale(struct kb *kb, enum combine how, enum dtype dtype, expr_id count) {
  expr_id n = expr_cast(kb->k, DTYPE_DOUBLE, count), one = expr_float(kb->k, DTYPE_DOUBLE, 1);
  if (how == COMBINE_SQRTN)
    n = expr_unary(kb->k, SCALAR_SQRT, n);
  return expr_cast(kb->k, dtype, expr_binary(kb->k, SCALAR_DIV, one, n));
}

/* A scratch buffer with the number of rows of each segment. */
static uint32_t count_segments(struct kb *kb, uint32_t ids, dim length, dim count) {
  uint32_t counts = kb_scratch(kb, DTYPE_INT64, 1, &count);
  kb_fill(kb, counts, 1, &count, real_element(kb_int(kb, 0)));
  expr_id r = kb_for_dim(kb, LOOP_SEQ, length);
  expr_id id = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, ids, &r))));
  kb_check(kb, kb_in_range(kb, id, kb_dim(kb, count)), INVALID_ARGUMENT, "Segment id %d out of range [0, %d).", id, kb_dim(kb, count));
  kb_store(kb, counts, &id, real_element(kb_add(kb, kb_load(kb, counts, &id).re, kb_int(kb, 1))));
  kb_close(kb, 1);
  return counts;
}

static status scatter_segments(struct op_call *c, value_id indices, dim count) {
  value_id grad, ids;
  dim dims[LIMIT_RANK];
  int rank;
  enum combine how = OP_ROW(c, combine_row)->how;
  TRY(op_input(c, 0, &grad));
  TRY(op_input(c, 2, &ids));
  TRY(row_dims(c, grad, 1, count, &rank, dims));
  struct flow_value g = *op_value(c, grad), s = *op_value(c, ids);
  struct kb kb;
  kb_begin(&kb, c, g.dtype);
  uint32_t in = kb_in(&kb, grad), rows = kb_in(&kb, indices), segments = kb_in(&kb, ids), out = kb_out(&kb, g.dtype, rank, dims);
  kb_fill(&kb, out, rank, dims, f_const_as(&kb.f, g.dtype, 0));
  uint32_t counts = count_segments(&kb, segments, s.dims[0], g.dims[0]);
  expr_id to[LIMIT_RANK], from[LIMIT_RANK], r = kb_for_dim(&kb, LOOP_SEQ, s.dims[0]);
  from[0] = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, segments, &r))));
  to[0] = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, rows, &r))));
  kb_check(&kb, kb_in_range(&kb, to[0], kb_dim(&kb, count)), INVALID_ARGUMENT, "Index %d out of range [0, %d).", to[0], kb_dim(&kb, count));
  expr_id scale = NO_EXPR;
  if (how != COMBINE_ADD)
    scale = kb_get(&kb, kb_local(&kb, segment_scale(&kb, how, g.dtype, kb_load(&kb, counts, &from[0]).re)));
  kb_loops(&kb, LOOP_PAR, rank - 1, dims + 1, to + 1);
  memcpy(from + 1, to + 1, sizeof *to * (size_t)(rank - 1));
  struct element e = kb_load(&kb, in, from);
  if (scale != NO_EXPR)
    e = f_binary(&kb.f, SCALAR_MUL, e, real_element(scale));
  kb_store(&kb, out, to, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, out, to), e));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

static status read_indices(struct op_call *c, const char *size, value_id *indices, dim *count) {
  value_id ids;
  TRY(op_input(c, 1, indices));
  TRY(op_input(c, 2, &ids));
  TRY(count_input(c, 3, size, count));
  if (op_value(c, *indices)->rank != 1)
    return fail(INVALID_ARGUMENT, "indices should be a vector.");
  return check_ids(c, ids, *indices, "segment_ids and indices should have same size.");
}

status build_sparse_segment_grad(struct op_call *c) {
  value_id indices;
  dim count;
  TRY(read_indices(c, "output_dim0", &indices, &count));
  return scatter_segments(c, indices, count);
}

/* The distinct indices in ascending order (the first *distinct of `unique`), and the place of each index among them. Nothing is as
 * long as there are rows: that is what these gradients are for. */
static status number_indices(struct op_call *c, value_id indices, dim rows, value_id *unique, value_id *places, dim *distinct) {
  struct flow_value x = *op_value(c, indices);
  dim count = x.dims[0];
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, indices), out = kb_out(&kb, x.dtype, 1, &count), numbers = kb_out(&kb, DTYPE_INT64, 1, &count);
  uint32_t total = kb_out(&kb, DTYPE_INT64, 0, NULL), keys = kb_scratch(&kb, DTYPE_INT64, 1, &count);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, count), row = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, in, &i))));
  kb_check(&kb, kb_in_range(&kb, row, kb_dim(&kb, rows)), INVALID_ARGUMENT, "Index %d out of range [0, %d).", row, kb_dim(&kb, rows));
  kb_store(&kb, keys, &i, real_element(row));
  kb_close(&kb, 1);
  uint32_t order = kb_sort_keys(&kb, keys, count), last = kb_local(&kb, kb_int(&kb, -1)), previous = kb_local(&kb, kb_int(&kb, -1));
  kb_fill(&kb, out, 1, &count, f_const_as(&kb.f, x.dtype, 0));
  i = kb_for_dim(&kb, LOOP_SEQ, count);
  row = kb_get(&kb, kb_local(&kb, kb_load(&kb, keys, &i).re));
  kb_if(&kb, kb_ne(&kb, row, kb_get(&kb, previous)));
  kb_set(&kb, previous, row);
  kb_set(&kb, last, kb_add(&kb, kb_get(&kb, last), kb_int(&kb, 1)));
  kb_close(&kb, 1);
  expr_id to = kb_get(&kb, last), from = kb_get(&kb, kb_local(&kb, kb_load(&kb, order, &i).re));
  kb_store(&kb, out, &to, real_element(expr_cast(kb.k, x.dtype, row)));
  kb_store(&kb, numbers, &from, real_element(to));
  kb_close(&kb, 1);
  kb_store(&kb, total, NULL, real_element(kb_add(&kb, kb_get(&kb, last), kb_int(&kb, 1))));
  *unique = kb_value(&kb, out);
  *places = kb_value(&kb, numbers);
  value_id v = kb_value(&kb, total);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, distinct);
}

/* Only the rows that have a gradient, and which they are. */
status build_sparse_segment_grad_rows(struct op_call *c) {
  value_id indices, unique, places, rows;
  dim count, distinct;
  TRY(read_indices(c, "dense_output_dim0", &indices, &count));
  TRY(number_indices(c, indices, count, &unique, &places, &distinct));
  TRY(scatter_segments(c, places, distinct));
  TRY(op_first_rows(c, unique, distinct, &rows));
  op_set_output(c, 1, rows);
  return OK;
}
