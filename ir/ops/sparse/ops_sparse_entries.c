/* ops_sparse_entries.c: sparse tensors made of the entries of others: reordered, put together, cut, summed, reshaped.
 *
 * Entries are in the order of their indices (row-major), as TensorFlow demands; within the shape that is the order of
 * their numbers in the dense tensor, by which they are sorted where those are i64. */
#include <string.h>

#include "ir/ops/sparse/sparse.h"

/* ---- SparseReorder, SparseConcat ---- */

/* order = order[perm] */
static void compose(struct kb *kb, uint32_t order, uint32_t perm, dim count) {
  uint32_t next = kb_scratch(kb, DTYPE_INT64, 1, &count);
  expr_id i = kb_for_dim(kb, LOOP_SEQ, count), from = kb_get(kb, kb_local(kb, kb_load(kb, perm, &i).re));
  kb_store(kb, next, &i, kb_load(kb, order, &from));
  kb_close(kb, 1);
  i = kb_for_dim(kb, LOOP_SEQ, count);
  kb_store(kb, order, &i, kb_load(kb, next, &i));
  kb_close(kb, 1);
}

/* The entries' numbers in order: sorted by their places in the dense tensor. A shape with more places than an i64 counts takes a
 * stable sort by each index, the last one first; so do indices outside of the shape, where they are not refused (`outside`). */
static status sorted_entries(struct op_call *c, const struct sparse *s, bool outside, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t keys = kb_scratch(&kb, DTYPE_INT64, 1, &s->count), o = kb_out(&kb, DTYPE_INT64, 1, &s->count);
  uint32_t all_inside = kb_local(&kb, expr_int(kb.k, DTYPE_BOOL, 1));
  expr_id n = kb_for_dim(&kb, LOOP_SEQ, s->count), index[LIMIT_RANK], last = kb_int(&kb, s->rank - 1);
  (outside ? kb_sparse_index : kb_sparse_index_checked)(&kb, s, n, index);
  for (int d = 0; d < s->rank && outside; d++)
    kb_set(&kb, all_inside, kb_and(&kb, kb_get(&kb, all_inside), kb_in_range(&kb, index[d], kb_dim(&kb, s->dims[d]))));
  kb_store(&kb, o, &n, real_element(n));
  kb_close(&kb, 1);
  expr_id has_size = s->rank ? kb_and(&kb, kb_get(&kb, all_inside), kb_sparse_has_size(&kb, s)) : NO_EXPR;
  expr_id pass = kb_for(&kb, LOOP_SEQ, s->rank ? kb_select(&kb, has_size, kb_int(&kb, 1), kb_int(&kb, s->rank)) : kb_int(&kb, 0));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, s->count), at[2] = {kb_get(&kb, kb_local(&kb, kb_load(&kb, o, &i).re)), kb_sub(&kb, last, pass)};
  kb_sparse_index(&kb, s, at[0], index);
  expr_id here = kb_load(&kb, kb_in(&kb, s->indices), at).re;
  kb_store(&kb, keys, &i, real_element(s->rank ? kb_select(&kb, has_size, kb_sparse_flat(&kb, s, index), here) : i));
  kb_close(&kb, 1);
  compose(&kb, o, kb_sort_keys(&kb, keys, s->count), s->count);
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

static status set_reordered(struct op_call *c, const struct sparse *s, bool outside) {
  value_id order, indices, values;
  TRY(sorted_entries(c, s, outside, &order));
  TRY(op_pick_rows(c, s->indices, order, op_dim(c, 0), s->count, &indices));
  TRY(op_pick_rows(c, s->values, order, op_dim(c, 0), s->count, &values));
  op_set_output(c, 0, indices);
  op_set_output(c, 1, values);
  return OK;
}

status build_sparse_reorder(struct op_call *c) {
  struct sparse s;
  TRY(sparse_input(c, 0, 1, 2, &s));
  TRY(sparse_dims(c, &s, "input_shape"));
  return set_reordered(c, &s, true);
}

static status concat_inputs(struct op_call *c, int count, struct sparse *parts, int *axis) {
  for (int i = 0; i < count; i++) {
    uint32_t at = (uint32_t)i, n = (uint32_t)count;
    TRY(sparse_input(c, at, n + at, 2 * n + at, &parts[i]));
    TRY(sparse_dims(c, &parts[i], "shapes"));
    TRY(sparse_check_size(c, &parts[i], INTERNAL));
    if (parts[i].rank != parts[0].rank)
      return fail(INVALID_ARGUMENT, "Ranks of all input tensors must match: expected %d but got %d at position %d", parts[0].rank,
                  parts[i].rank, i);
  }
  int64_t wanted = node_attr_int(c->node, "concat_dim", 0);
  int rank = parts[0].rank;
  if (wanted < -rank || wanted >= rank)
    return fail(INVALID_ARGUMENT, "Concat dimension must be in range [%d, %d), got %lld", -rank, rank, (long long)wanted);
  *axis = (int)(wanted < 0 ? wanted + rank : wanted);
  for (int i = 1; i < count; i++)
    for (int d = 0; d < rank; d++)
      if (d != *axis)
        TRY(op_equal_dims(c, parts[0].dims[d], parts[i].dims[d], "Input shapes of SparseConcat"));
  return OK;
}

/* All entries one after the other, with their indices moved along the axis. */
static status append_entries(struct op_call *c, const struct sparse *parts, int count, int axis, struct sparse *out) {
  enum dtype dtype = op_value(c, parts[0].values)->dtype;
  dim dims[2] = {out->count, op_dim(c, out->rank)}, row = op_dim(c, 0), offset = op_dim(c, 0);
  struct kb indices, values;
  kb_begin(&indices, c, DTYPE_INT64);
  kb_begin(&values, c, dtype);
  uint32_t to_indices = kb_out(&indices, DTYPE_INT64, 2, dims), to_values = kb_out(&values, dtype, 1, dims);
  for (int i = 0; i < count; i++) {
    uint32_t in = kb_in(&indices, parts[i].indices);
    expr_id at[2] = {kb_for_dim(&indices, LOOP_PAR, parts[i].count), NO_EXPR};
    for (int d = 0; d < out->rank; d++) {
      at[1] = kb_int(&indices, d);
      expr_id to[2] = {kb_add(&indices, kb_dim(&indices, row), at[0]), at[1]}, x = kb_load(&indices, in, at).re;
      kb_store(&indices, to_indices, to, real_element(d == axis ? kb_add(&indices, x, kb_dim(&indices, offset)) : x));
    }
    kb_close(&indices, 1);
    expr_id n = kb_for_dim(&values, LOOP_PAR, parts[i].count), to = kb_add(&values, kb_dim(&values, row), n);
    kb_store(&values, to_values, &to, kb_load(&values, kb_in(&values, parts[i].values), &n));
    kb_close(&values, 1);
    row = op_add(c, row, parts[i].count);
    offset = op_add(c, offset, parts[i].dims[axis]);
  }
  out->indices = kb_value(&indices, to_indices);
  out->values = kb_value(&values, to_values);
  TRY(kb_finish_guarded(&indices));
  return kb_finish_guarded(&values);
}

status build_sparse_concat(struct op_call *c) {
  int axis = 0, count = (int)node_attr_int(c->node, "N", 1);
  struct sparse *parts = ARENA_ARRAY(op_arena(c), struct sparse, count), all;
  TRY(concat_inputs(c, count, parts, &axis));
  all = parts[0];
  for (int i = 1; i < count; i++) {
    all.count = op_add(c, all.count, parts[i].count);
    all.dims[axis] = op_add(c, all.dims[axis], parts[i].dims[axis]);
  }
  TRY(append_entries(c, parts, count, axis, &all));
  op_set_output(c, 2, op_dims_value(c, DTYPE_INT64, 1, all.dims, all.rank));
  return set_reordered(c, &all, false);
}

/* ---- SparseSlice, SparseSplit ---- */

struct cut {
  value_id start, size;
  value_id picks;
  dim count, dims[LIMIT_RANK];
};

static status cut_dims(struct op_call *c, const struct sparse *s, struct cut *cut) {
  dim length = op_dim(c, s->rank);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &length);
  for (int d = 0; d < s->rank; d++) {
    expr_id at = kb_int(&kb, d), rest = kb_sub(&kb, kb_dim(&kb, s->dims[d]), kb_element(&kb, cut->start, d));
    expr_id size = expr_binary(kb.k, SCALAR_MIN, kb_element(&kb, cut->size, d), rest);
    kb_store(&kb, o, &at, real_element(expr_binary(kb.k, SCALAR_MAX, size, kb_int(&kb, 0))));
  }
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, s->rank, cut->dims);
}

static status cut_entries(struct op_call *c, const struct sparse *s, struct cut *cut) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t picks = kb_out(&kb, DTYPE_INT64, 1, &s->count), total = kb_out(&kb, DTYPE_INT64, 0, NULL);
  kb_fill(&kb, picks, 1, &s->count, real_element(kb_int(&kb, 0)));
  uint32_t count = kb_local(&kb, kb_int(&kb, 0));
  expr_id n = kb_for_dim(&kb, LOOP_SEQ, s->count), index[LIMIT_RANK], inside = expr_int(kb.k, DTYPE_BOOL, 1);
  kb_sparse_index(&kb, s, n, index);
  for (int d = 0; d < s->rank; d++)
    inside = kb_and(&kb, inside, kb_in_range(&kb, kb_sub(&kb, index[d], kb_element(&kb, cut->start, d)), kb_dim(&kb, cut->dims[d])));
  kb_if(&kb, inside);
  expr_id to = kb_get(&kb, count);
  kb_store(&kb, picks, &to, real_element(n));
  kb_set(&kb, count, kb_add(&kb, to, kb_int(&kb, 1)));
  kb_close(&kb, 2);
  kb_store(&kb, total, NULL, real_element(kb_get(&kb, count)));
  cut->picks = kb_value(&kb, picks);
  value_id v = kb_value(&kb, total);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, &cut->count);
}

static status cut_indices(struct op_call *c, const struct sparse *s, const struct cut *cut, value_id *out) {
  dim dims[2] = {cut->count, op_dim(c, s->rank)};
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, s->indices), picks = kb_in(&kb, cut->picks), o = kb_out(&kb, DTYPE_INT64, 2, dims);
  expr_id n = kb_for_dim(&kb, LOOP_PAR, cut->count), row = kb_load(&kb, picks, &n).re;
  for (int d = 0; d < s->rank; d++) {
    expr_id from[2] = {row, kb_int(&kb, d)}, to[2] = {n, from[1]};
    kb_store(&kb, o, to, real_element(kb_sub(&kb, kb_load(&kb, in, from).re, kb_element(&kb, cut->start, d))));
  }
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* Sets outputs first, first + step, first + 2 * step: indices, values, shape. */
static status set_cut(struct op_call *c, const struct sparse *s, struct cut *cut, uint32_t first, uint32_t step) {
  value_id indices, values;
  TRY(cut_dims(c, s, cut));
  TRY(cut_entries(c, s, cut));
  TRY(cut_indices(c, s, cut, &indices));
  TRY(op_pick_rows(c, s->values, cut->picks, op_dim(c, 0), cut->count, &values));
  op_set_output(c, first, indices);
  op_set_output(c, first + step, values);
  op_set_output(c, first + 2 * step, op_dims_value(c, DTYPE_INT64, 1, cut->dims, s->rank));
  return OK;
}

status build_sparse_slice(struct op_call *c) {
  struct sparse s;
  struct cut cut;
  TRY(sparse_input(c, 0, 1, 2, &s));
  TRY(sparse_dims(c, &s, "shape"));
  TRY(sparse_check_size(c, &s, INVALID_ARGUMENT));
  TRY(op_input(c, 3, &cut.start));
  TRY(op_input(c, 4, &cut.size));
  TRY(op_vector_of(c, &cut.start, s.rank, "start"));
  TRY(op_vector_of(c, &cut.size, s.rank, "size"));
  struct kb guard;
  guard_begin(&guard, c);
  for (int d = 0; d < s.rank; d++) {
    expr_id size = kb_element(&guard, cut.size, d);
    kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), size), INVALID_ARGUMENT, "Expected a non-negative size, got %d", size, NO_EXPR);
  }
  TRY(guard_finish(&guard));
  return set_cut(c, &s, &cut, 0, 1);
}

/* A guard: all entries lie within the shape. */
static status check_entries(struct op_call *c, const struct sparse *s) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id n = kb_for_dim(&guard, LOOP_SEQ, s->count), index[LIMIT_RANK];
  kb_sparse_index_checked(&guard, s, n, index);
  kb_close(&guard, 1);
  return guard_finish(&guard);
}

/* The first parts are one longer when the size does not divide evenly. */
status build_sparse_split(struct op_call *c) {
  struct sparse s;
  value_id axis_value;
  int axis;
  TRY(op_input(c, 0, &axis_value));
  TRY(sparse_input(c, 1, 2, 3, &s));
  TRY(sparse_dims(c, &s, "shape"));
  TRY(op_known_axis(c, axis_value, "Input split_dim", s.rank, &axis));
  int64_t count = node_attr_int(c->node, "num_split", 1);
  TRY(sparse_check_size(c, &s, INVALID_ARGUMENT));
  TRY(check_entries(c, &s));
  TRY(op_require_le(c, op_dim(c, count), s.dims[axis], "Input num_split should be less than or equal to the split dimension: %d, %d"));
  struct dim_table *t = op_dims(c);
  dim each = dim_floordiv(t, s.dims[axis], op_dim(c, count)), longer = dim_mod(t, s.dims[axis], op_dim(c, count));
  for (int64_t i = 0; i < count; i++) {
    dim start[LIMIT_RANK], size[LIMIT_RANK];
    for (int d = 0; d < s.rank; d++)
      start[d] = op_dim(c, 0), size[d] = s.dims[d];
    start[axis] = op_add(c, op_mul(c, each, op_dim(c, i)), dim_min(t, longer, op_dim(c, i)));
    dim end = op_add(c, op_mul(c, each, op_dim(c, i + 1)), dim_min(t, longer, op_dim(c, i + 1)));
    size[axis] = dim_sub(t, end, start[axis]);
    struct cut cut = {.start = op_dims_value(c, DTYPE_INT64, 1, start, s.rank), .size = op_dims_value(c, DTYPE_INT64, 1, size, s.rank)};
    TRY(set_cut(c, &s, &cut, (uint32_t)i, (uint32_t)count));
  }
  return OK;
}

/* ---- SparseReshape ---- */

/* The new shape with the one -1 replaced by what is left. */
static status new_shape(struct op_call *c, const struct sparse *s, value_id wanted, int rank, dim *out) {
  dim length = op_dim(c, rank), total = op_count(c, s->rank, s->dims);
  struct kb guard, kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &length);
  expr_id one = kb_int(&kb, 1), zero = kb_int(&kb, 0), known = one;
  for (int d = 0; d < rank; d++) {
    expr_id n = kb_element(&kb, wanted, d);
    known = kb_mul(&kb, known, kb_select(&kb, kb_lt(&kb, n, zero), one, n));
  }
  for (int d = 0; d < rank; d++) {
    expr_id n = kb_element(&kb, wanted, d), at = kb_int(&kb, d);
    kb_store(&kb, o, &at, real_element(kb_select(&kb, kb_lt(&kb, n, zero), kb_div(&kb, kb_dim(&kb, total), known), n)));
  }
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  TRY(op_bound_dims(c, v, rank, out));
  guard_begin(&guard, c);
  expr_id open = kb_int(&guard, 0), have = kb_dim(&guard, total), product = kb_int(&guard, 1), none = kb_lt(&guard, open, open);
  for (int d = 0; d < rank; d++) {
    none = kb_or(&guard, none, kb_eq(&guard, kb_element(&guard, wanted, d), kb_int(&guard, 0)));
    open = kb_add(&guard, open, expr_cast(guard.k, DTYPE_INT64, kb_lt(&guard, kb_element(&guard, wanted, d), kb_int(&guard, 0))));
    product = kb_mul(&guard, product, kb_dim(&guard, out[d]));
  }
  kb_check(&guard, kb_le(&guard, open, kb_int(&guard, 1)), INVALID_ARGUMENT, "only one output dimension may be -1", NO_EXPR, NO_EXPR);
  kb_check(
    &guard, kb_or(&guard, kb_eq(&guard, open, kb_int(&guard, 0)), kb_eq(&guard, none, expr_int(guard.k, DTYPE_BOOL, 0))), INVALID_ARGUMENT,
    "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes are non-zero", NO_EXPR, NO_EXPR);
  kb_check(&guard, kb_eq(&guard, product, have), INVALID_ARGUMENT,
           "Input to reshape is a tensor with %d dense values, but the requested shape has %d", have, product);
  return guard_finish(&guard);
}

/* To the same shape indices stay as they are, also those beyond it. */
status build_sparse_reshape(struct op_call *c) {
  struct sparse s;
  value_id wanted;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(sparse_input(c, 0, UINT32_MAX, 1, &s));
  TRY(sparse_dims(c, &s, "input_shape"));
  TRY(sparse_check_size(c, &s, INVALID_ARGUMENT));
  TRY(op_input(c, 2, &wanted));
  TRY(op_vector_length(c, wanted, "new_shape", &rank));
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a new shape of rank above %d", LIMIT_RANK);
  TRY(new_shape(c, &s, wanted, rank, dims));
  dim out_dims[2] = {s.count, op_dim(c, rank)};
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t out = kb_out(&kb, DTYPE_INT64, 2, out_dims);
  expr_id stays = expr_int(kb.k, DTYPE_BOOL, rank == s.rank);
  for (int d = 0; d < rank && rank == s.rank; d++)
    stays = kb_and(&kb, stays, kb_eq(&kb, kb_dim(&kb, dims[d]), kb_dim(&kb, s.dims[d])));
  expr_id n = kb_for_dim(&kb, LOOP_PAR, s.count), index[LIMIT_RANK];
  kb_sparse_index(&kb, &s, n, index);
  uint32_t flat = kb_local(&kb, kb_sparse_flat(&kb, &s, index));
  for (int d = rank - 1; d >= 0; d--) {
    expr_id to[2] = {n, kb_int(&kb, d)}, size = kb_dim(&kb, dims[d]), left = kb_get(&kb, flat);
    expr_id at = d ? kb_mod(&kb, left, size) : left;
    kb_store(&kb, out, to, real_element(rank == s.rank ? kb_select(&kb, stays, index[d], at) : at));
    kb_set(&kb, flat, kb_div(&kb, left, size));
  }
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, out));
  TRY(kb_finish_guarded(&kb));
  op_set_output(c, 1, op_dims_value(c, DTYPE_INT64, 1, dims, rank));
  return OK;
}
