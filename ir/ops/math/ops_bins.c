/* ops_bins.c: values counted in bins and found in sorted lists: Bincount and its dense, sparse and ragged forms,
 * HistogramFixedWidth, Bucketize, LowerBound, UpperBound, NthElement. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/ops/sparse/sparse.h"

/* ---- counting ---- */

static status size_input(struct op_call *c, uint32_t i, const char *what, dim *out) {
  value_id v;
  TRY(op_input(c, i, &v));
  if (op_value(c, v)->rank != 0)
    return fail(INVALID_ARGUMENT, "Shape must be rank 0 but is rank %d: %s", op_value(c, v)->rank, what);
  struct kb guard;
  guard_begin(&guard, c);
  expr_id n = kb_element(&guard, v, 0);
  kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), n), INVALID_ARGUMENT, arena_printf(op_arena(c), "%s (%%d) must be non-negative", what),
           n, NO_EXPR);
  TRY(guard_finish(&guard));
  return op_bound_dims(c, v, 1, out);
}

enum rows {
  ROWS_NONE,   /* one row: the result is a vector */
  ROWS_DENSE,  /* values are [rows, width] */
  ROWS_SPARSE, /* dimension 0 of the entries' indices */
  ROWS_RAGGED, /* splits [rows + 1] */
};
struct counted {
  value_id values, weights; /* vectors; weights may be empty: each value counts 1 */
  bool binary, ignores_negative;
  enum rows kind;
  dim rows, size;
  value_id splits;      /* ROWS_RAGGED */
  struct sparse sparse; /* ROWS_SPARSE, or ROWS_NONE: then only checked */
};

static value_id flat_value(struct op_call *c, value_id v) {
  struct flow_value x = *op_value(c, v);
  dim count = op_count(c, x.rank, x.dims);
  return x.rank == 1 ? v : op_alias(c, v, x.dtype, 1, &count);
}

/* weights: none, or as many as values; with `alike` also of one shape. */
static status check_weights(struct op_call *c, value_id values, value_id weights, bool alike) {
  struct flow_value x = *op_value(c, values), w = *op_value(c, weights);
  dim values_count = op_count(c, x.rank, x.dims), count = op_count(c, w.rank, w.dims);
  int64_t known = op_dim_value(c, count);
  const char *text = "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights equal to 1: "
                     "%d weights for %d values";
  if (known == 0)
    return OK;
  bool differ = x.rank != w.rank;
  for (int d = 0; alike && d < x.rank && !differ; d++)
    differ = dim_equal(op_dims(c), x.dims[d], w.dims[d]) == 0;
  if (known > 0 && alike && differ)
    return fail(INVALID_ARGUMENT, "`weights` must be the same shape as `arr` or a length-0 `Tensor`, got %s and %s",
                op_shape_text(c, w.rank, w.dims), op_shape_text(c, x.rank, x.dims));
  struct kb guard;
  guard_begin(&guard, c);
  expr_id n = kb_dim(&guard, count), wanted = kb_dim(&guard, alike && x.rank != w.rank ? op_dim(c, 0) : values_count);
  kb_check(&guard, kb_or(&guard, kb_eq(&guard, n, kb_int(&guard, 0)), kb_eq(&guard, n, wanted)), INVALID_ARGUMENT, text, n, wanted);
  return guard_finish(&guard);
}

/* A local: the row of value i. */
static expr_id row_of_value(struct kb *kb, const struct counted *n, expr_id i, uint32_t row) {
  if (n->kind == ROWS_DENSE)
    return kb_div(kb, i, kb_div(kb, kb_dim(kb, op_value(kb->c, n->values)->dims[0]), kb_dim(kb, n->rows)));
  if (n->sparse.indices) {
    expr_id index[LIMIT_RANK];
    kb_sparse_index_checked(kb, &n->sparse, i, index);
    return index[0];
  }
  if (n->kind == ROWS_RAGGED) { /* the last row that begins at or before i */
    expr_id after = kb_add(kb, kb_get(kb, row), kb_int(kb, 1));
    kb_while(kb, kb_le(kb, kb_index(kb, kb_load(kb, kb_in(kb, n->splits), &after)), i));
    kb_set(kb, row, after);
    kb_close(kb, 1);
  }
  return kb_get(kb, row);
}

/* out[row, value] += weight */
static status count_values(struct op_call *c, const struct counted *n) {
  enum dtype dtype = op_output_dtype(c, 0);
  struct flow_value weights = *op_value(c, n->weights);
  dim dims[2] = {n->rows, n->size}, count = op_value(c, n->values)->dims[0];
  int rank = n->kind == ROWS_NONE ? 1 : 2;
  const dim *out_dims = rank == 1 ? &n->size : dims;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t in = kb_in(&kb, n->values), out = kb_out(&kb, dtype, rank, out_dims);
  kb_fill(&kb, out, rank, out_dims, f_const_as(&kb.f, dtype, 0));
  expr_id zero = kb_int(&kb, 0), weight_count = kb_dim(&kb, weights.dims[0]), to[2];
  uint32_t row = kb_local(&kb, zero);
  struct element one = f_const_as(&kb.f, dtype, 1);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, count);
  expr_id value = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, in, &i))));
  if (!n->ignores_negative)
    kb_check(&kb, kb_le(&kb, zero, value), INVALID_ARGUMENT, "Input arr must be non-negative!", NO_EXPR, NO_EXPR);
  to[0] = row_of_value(&kb, n, i, row);
  to[1] = value;
  const expr_id *place = rank == 2 ? to : &value;
  kb_if(&kb, kb_in_range(&kb, value, kb_dim(&kb, n->size)));
  int64_t known = op_dim_value(c, weights.dims[0]);
  bool weighted = !n->binary && known != 0;
  if (weighted && known < 0)
    kb_if(&kb, kb_lt(&kb, zero, weight_count));
  if (weighted)
    kb_store(&kb, out, place, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, out, place), kb_load(&kb, kb_in(&kb, n->weights), &i)));
  if (weighted && known < 0)
    kb_else(&kb);
  if (!weighted || known < 0)
    kb_store(&kb, out, place, n->binary ? one : f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, out, place), one));
  kb_close(&kb, weighted && known < 0 ? 3 : 2);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* Inputs `values`, `size` and `weights` of any form. */
static status read_counted(struct op_call *c, const char *values, bool alike, struct counted *n, struct flow_value *shape) {
  value_id v, w;
  TRY(op_input(c, op_arg_index(c, values), &v));
  TRY(op_input(c, op_arg_index(c, "weights"), &w));
  TRY(size_input(c, op_arg_index(c, "size"), "size", &n->size));
  TRY(check_weights(c, v, w, alike));
  *shape = *op_value(c, v);
  n->values = flat_value(c, v);
  n->weights = flat_value(c, w);
  n->binary = node_attr_int(c->node, "binary_output", 0) != 0;
  n->rows = op_dim(c, 1);
  return OK;
}

status build_bincount(struct op_call *c) {
  struct counted n = {0};
  struct flow_value shape;
  TRY(read_counted(c, "arr", false, &n, &shape));
  return count_values(c, &n);
}

status build_dense_bincount(struct op_call *c) {
  struct counted n = {0};
  struct flow_value shape;
  TRY(read_counted(c, "input", true, &n, &shape));
  if (shape.rank > 2)
    return fail(INVALID_ARGUMENT, "Shape must be at most rank 2 but is rank %d", shape.rank);
  n.kind = shape.rank == 2 ? ROWS_DENSE : ROWS_NONE;
  if (shape.rank == 2)
    n.rows = shape.dims[0];
  return count_values(c, &n);
}

/* Entries of a matrix are counted by rows, and negative ones not at all; those of a vector together. */
status build_sparse_bincount(struct op_call *c) {
  struct counted n = {0};
  struct flow_value shape;
  TRY(read_counted(c, "values", false, &n, &shape));
  TRY(sparse_input(c, 0, 1, 2, &n.sparse));
  TRY(sparse_dims(c, &n.sparse, "dense_shape"));
  n.kind = n.sparse.rank == 1 ? ROWS_NONE : ROWS_SPARSE;
  n.ignores_negative = n.sparse.rank != 1;
  if (n.sparse.rank < 1)
    return fail(INVALID_ARGUMENT, "the dense shape must not be empty");
  n.rows = n.sparse.dims[0];
  return count_values(c, &n);
}

status build_ragged_bincount(struct op_call *c) {
  struct counted n = {.kind = ROWS_RAGGED};
  struct flow_value shape;
  TRY(read_counted(c, "values", false, &n, &shape));
  TRY(op_input(c, 0, &n.splits));
  n.splits = flat_value(c, n.splits);
  dim splits = op_value(c, n.splits)->dims[0], count = op_value(c, n.values)->dims[0];
  TRY(op_require_le(c, op_dim(c, 1), splits, "Splits must be non-empty: at least %d, got %d"));
  n.rows = dim_sub(op_dims(c), splits, op_dim(c, 1));
  struct kb guard;
  guard_begin(&guard, c);
  uint32_t in = kb_in(&guard, n.splits);
  expr_id zero = kb_int(&guard, 0), last = kb_dim(&guard, n.rows), values = kb_dim(&guard, count);
  expr_id begin = kb_load(&guard, in, &zero).re, end = kb_load(&guard, in, &last).re;
  kb_check(&guard, kb_eq(&guard, begin, zero), INVALID_ARGUMENT, "Splits must start with 0, not with %d", begin, NO_EXPR);
  kb_check(&guard, kb_eq(&guard, end, values), INVALID_ARGUMENT, "Splits must end with the number of values, got %d instead of %d", end,
           values);
  TRY(guard_finish(&guard));
  return count_values(c, &n);
}

/* ---- HistogramFixedWidth: equal bins over a range; what is outside is counted at the ends ---- */

static expr_id bin_of(struct kb *kb, uint32_t ranges, struct element value, expr_id bins) {
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1);
  expr_id low = kb_load(kb, ranges, &zero).re, high = kb_load(kb, ranges, &one).re;
  expr_id width = expr_cast(kb->k, DTYPE_DOUBLE, kb_sub(kb, high, low));
  expr_id step = expr_binary(kb->k, SCALAR_DIV, width, expr_cast(kb->k, DTYPE_DOUBLE, bins));
  expr_id above = kb_sub(kb, expr_binary(kb->k, SCALAR_MAX, value.re, low), low);
  expr_id place = expr_binary(kb->k, SCALAR_DIV, expr_cast(kb->k, DTYPE_DOUBLE, above), step);
  expr_id last = expr_cast(kb->k, DTYPE_DOUBLE, kb_sub(kb, bins, one));
  return kb_clamp(kb, expr_cast(kb->k, DTYPE_INT64, expr_binary(kb->k, SCALAR_MIN, place, last)), bins);
}

status build_histogram_fixed_width(struct op_call *c) {
  value_id v, range;
  dim bins;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &range));
  TRY(size_input(c, 2, "nbins", &bins));
  struct flow_value x = *op_value(c, v), r = *op_value(c, range);
  enum dtype dtype = op_output_dtype(c, 0);
  if (r.rank != 1)
    return fail(INVALID_ARGUMENT, "value_range should be a vector of 2 elements.");
  TRY(op_equal_dims(c, r.dims[0], op_dim(c, 2), "value_range should be a vector of 2 elements."));
  TRY(op_require_le(c, op_dim(c, 1), bins, "nbins should be a positive number: at least %d, but got '%d'"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), ranges = kb_in(&kb, range), out = kb_out(&kb, dtype, 1, &bins);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1), at[LIMIT_RANK];
  kb_check(&kb, kb_lt(&kb, kb_load(&kb, ranges, &zero).re, kb_load(&kb, ranges, &one).re), INVALID_ARGUMENT,
           "value_range should satisfy value_range[0] < value_range[1]", NO_EXPR, NO_EXPR);
  kb_fill(&kb, out, 1, &bins, f_const_as(&kb.f, dtype, 0));
  kb_loops(&kb, LOOP_SEQ, x.rank, x.dims, at);
  expr_id value = kb_load(&kb, in, at).re;
  if (dtype_is_float(x.dtype))
    kb_check(&kb, kb_eq(&kb, value, value), INVALID_ARGUMENT, "Histogram values must not contain NaN", NO_EXPR, NO_EXPR);
  expr_id bin = kb_get(&kb, kb_local(&kb, bin_of(&kb, ranges, real_element(value), kb_dim(&kb, bins))));
  kb_store(&kb, out, &bin, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, out, &bin), f_const_as(&kb.f, dtype, 1)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- binary search ---- */

/* A local: how many elements of list[row, 0..n) are below the value (with `equal`: or equal to it). */
static expr_id count_below(struct kb *kb, uint32_t list, int rank, expr_id row, expr_id n, expr_id value, bool equal) {
  uint32_t low = kb_local(kb, kb_int(kb, 0)), high = kb_local(kb, n);
  expr_id one = kb_int(kb, 1), two = kb_int(kb, 2);
  kb_while(kb, kb_lt(kb, kb_get(kb, low), kb_get(kb, high)));
  expr_id middle = kb_get(kb, kb_local(kb, kb_div(kb, kb_add(kb, kb_get(kb, low), kb_get(kb, high)), two)));
  expr_id index[2] = {rank == 2 ? row : middle, middle};
  expr_id x = expr_cast(kb->k, (enum dtype)expr_get(kb->k, value)->dtype, kb_load(kb, list, index).re);
  kb_if(kb, equal ? kb_le(kb, x, value) : kb_lt(kb, x, value));
  kb_set(kb, low, kb_add(kb, middle, one));
  kb_else(kb);
  kb_set(kb, high, middle);
  kb_close(kb, 2);
  return kb_get(kb, low);
}

status build_search_sorted(struct op_call *c) {
  value_id lists, v;
  bool upper = OP_ROW(c, search_row)->upper;
  TRY(op_input(c, 0, &lists));
  TRY(op_input(c, 1, &v));
  struct flow_value l = *op_value(c, lists), x = *op_value(c, v);
  enum dtype dtype = op_output_dtype(c, 0);
  if (l.rank != 2 || x.rank != 2)
    return fail(INVALID_ARGUMENT, "%s must be a matrix", l.rank != 2 ? "sorted_inputs" : "values");
  TRY(op_equal_dims(c, l.dims[0], x.dims[0], "Leading dim_size of both tensors must match."));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t sorted = kb_in(&kb, lists), in = kb_in(&kb, v), out = kb_out(&kb, dtype, 2, x.dims);
  expr_id at[2];
  kb_loops(&kb, LOOP_PAR, 2, x.dims, at);
  expr_id value = kb_get(&kb, kb_local(&kb, kb_load(&kb, in, at).re));
  expr_id place = count_below(&kb, sorted, 2, at[0], kb_dim(&kb, l.dims[1]), value, upper);
  kb_store(&kb, out, at, real_element(expr_cast(kb.k, dtype, place)));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_bucketize(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  const struct attr_value *list = node_attr(c->node, "boundaries");
  uint32_t count = list ? list->list.count : 0;
  float *bounds = arena_alloc_aligned(op_arena(c), sizeof *bounds * (count + 1), 64);
  for (uint32_t i = 0; i < count; i++) {
    bounds[i] = (float)list->list.items[i].f;
    if (i && bounds[i] < bounds[i - 1])
      return fail(INVALID_ARGUMENT, "Expected sorted boundaries");
  }
  dim length = op_dim(c, count);
  value_id boundaries = op_constant(c, DTYPE_FLOAT, 1, &length, bounds);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), sorted = kb_in(&kb, boundaries), out = kb_out(&kb, DTYPE_INT32, x.rank, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  enum dtype compared = x.dtype == DTYPE_DOUBLE ? DTYPE_DOUBLE : DTYPE_FLOAT;
  expr_id value = kb_get(&kb, kb_local(&kb, expr_cast(kb.k, compared, kb_load(&kb, in, at).re)));
  expr_id place = count_below(&kb, sorted, 1, NO_EXPR, kb_int(&kb, count), value, true);
  kb_store(&kb, out, at, real_element(expr_cast(kb.k, DTYPE_INT32, place)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}
