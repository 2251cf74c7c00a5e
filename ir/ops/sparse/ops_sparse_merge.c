/* ops_sparse_merge.c: walks over two ordered lists of entries: SparseAdd and its gradient, SparseSparseMaximum and Minimum,
 * SparseSliceGrad; and rows that have no entry: SparseFillEmptyRows and its gradient. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/ops/sparse/sparse.h"

/* A local: -1, 0 or 1 as row i of a comes before, is, or comes after row j of b moved by -start (NO_VALUE: not moved). */
static expr_id compare_rows(struct kb *kb, uint32_t a, expr_id i, uint32_t b, expr_id j, dim rank, value_id start) {
  expr_id zero = kb_int(kb, 0);
  uint32_t order = kb_local(kb, zero);
  expr_id d = kb_for_dim(kb, LOOP_SEQ, rank), x[2] = {i, d}, y[2] = {j, d};
  expr_id p = kb_load(kb, a, x).re, q = kb_load(kb, b, y).re;
  q = start ? kb_sub(kb, q, kb_load(kb, kb_in(kb, start), &d).re) : q;
  expr_id here = kb_select(kb, kb_lt(kb, p, q), kb_int(kb, -1), kb_select(kb, kb_lt(kb, q, p), kb_int(kb, 1), zero));
  kb_set(kb, order, kb_select(kb, kb_eq(kb, kb_get(kb, order), zero), here, kb_get(kb, order)));
  kb_close(kb, 1);
  return kb_get(kb, order);
}

/* ---- SparseAdd, SparseSparseMaximum and Minimum ---- */

struct side {
  const struct sparse *s;
  uint32_t at; /* a local: the next entry */
};

/* A local: -1, 0 or 1 as the next entry of x comes first, both are the same, or that of y comes first; a side may have none left. */
static expr_id compare_next(struct kb *kb, const struct side *x, const struct side *y, expr_id more_x, expr_id more_y) {
  uint32_t order = kb_local(kb, kb_select(kb, more_x, kb_int(kb, -1), kb_int(kb, 1)));
  kb_if(kb, kb_and(kb, more_x, more_y));
  kb_set(kb, order,
         compare_rows(kb, kb_in(kb, x->s->indices), kb_get(kb, x->at), kb_in(kb, y->s->indices), kb_get(kb, y->at),
                      op_dim(kb->c, x->s->rank), NO_VALUE));
  kb_close(kb, 1);
  return kb_get(kb, order);
}

/* Takes the side's next entry when `wanted`: its index goes to row `to`, its value to new locals, which are 0 otherwise. Of two that are
 * added, TensorFlow lets indices lie beyond the shape. */
static struct element take_entry(struct kb *kb, const struct side *side, bool is_sum, expr_id wanted, uint32_t indices, expr_id to,
                                 enum dtype dtype) {
  struct element none = f_const_as(&kb->f, dtype, 0);
  bool complex = dtype_is_complex(dtype);
  uint32_t re = kb_local(kb, none.re), im = complex ? kb_local(kb, none.im) : 0;
  expr_id n = kb_get(kb, side->at), index[LIMIT_RANK];
  kb_if(kb, wanted);
  if (is_sum)
    kb_sparse_index(kb, side->s, n, index);
  else
    kb_sparse_index_checked(kb, side->s, n, index);
  for (int d = 0; d < side->s->rank; d++)
    kb_store(kb, indices, (expr_id[]){to, kb_int(kb, d)}, real_element(index[d]));
  struct element x = kb_load(kb, kb_in(kb, side->s->values), &n);
  kb_set(kb, re, x.re);
  if (complex)
    kb_set(kb, im, x.im);
  kb_set(kb, side->at, kb_add(kb, n, kb_int(kb, 1)));
  kb_close(kb, 1);
  return (struct element){kb_get(kb, re), complex ? kb_get(kb, im) : NO_EXPR};
}

struct merged {
  value_id indices, values; /* of all places; the first `count` hold */
  dim count;
};

/* Entries of both, combined where both have one. With a threshold they are added, and sums below it are left out; without one
 * `how` also combines with the 0 of the side that has no entry. */
static status merge_entries(struct op_call *c, const struct sparse *a, const struct sparse *b, enum combine how, value_id threshold,
                            struct merged *out) {
  enum dtype dtype = op_value(c, a->values)->dtype;
  dim most[2] = {op_add(c, a->count, b->count), op_dim(c, a->rank)};
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t indices = kb_out(&kb, DTYPE_INT64, 2, most), values = kb_out(&kb, dtype, 1, most), total = kb_out(&kb, DTYPE_INT64, 0, NULL);
  kb_fill(&kb, indices, 2, most, real_element(kb_int(&kb, 0)));
  kb_fill(&kb, values, 1, most, f_const_as(&kb.f, dtype, 0));
  expr_id zero = kb_int(&kb, 0);
  uint32_t count = kb_local(&kb, zero);
  struct side x = {a, kb_local(&kb, zero)}, y = {b, kb_local(&kb, zero)};
  expr_id more_x = kb_lt(&kb, kb_get(&kb, x.at), kb_dim(&kb, a->count)), more_y = kb_lt(&kb, kb_get(&kb, y.at), kb_dim(&kb, b->count));
  kb_while(&kb, kb_or(&kb, more_x, more_y));
  expr_id order = compare_next(&kb, &x, &y, more_x, more_y), to = kb_get(&kb, count);
  struct element p = take_entry(&kb, &x, threshold, kb_le(&kb, order, zero), indices, to, dtype);
  struct element q = take_entry(&kb, &y, threshold, kb_le(&kb, zero, order), indices, to, dtype), value = kb_combine(&kb, how, p, q);
  if (threshold) { /* only sums of two can fall below it */
    expr_id both = kb_eq(&kb, order, zero);
    value = f_select(&kb.f, real_element(both), value, f_select(&kb.f, real_element(kb_lt(&kb, order, zero)), p, q));
    expr_id large = kb_le(&kb, kb_load(&kb, kb_in(&kb, threshold), NULL).re, f_norm(&kb.f, value).re);
    kb_if(&kb, kb_or(&kb, kb_ne(&kb, order, zero), large));
  }
  kb_store(&kb, values, &to, value);
  kb_set(&kb, count, kb_add(&kb, to, kb_int(&kb, 1)));
  kb_close(&kb, threshold ? 2 : 1);
  kb_store(&kb, total, NULL, real_element(kb_get(&kb, count)));
  out->indices = kb_value(&kb, indices);
  out->values = kb_value(&kb, values);
  value_id v = kb_value(&kb, total);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, &out->count);
}

static status read_operands(struct op_call *c, struct sparse *a, struct sparse *b) {
  TRY(sparse_input(c, 0, 1, 2, a));
  TRY(sparse_input(c, 3, 4, 5, b));
  if (a->rank != b->rank)
    return fail(INVALID_ARGUMENT, "Ranks of input tensors must match, but saw ranks: %d and %d", a->rank, b->rank);
  TRY(sparse_dims(c, a, "a_shape"));
  TRY(sparse_dims(c, b, "b_shape"));
  for (int d = 0; d < a->rank; d++)
    TRY(op_equal_dims(c, a->dims[d], b->dims[d], "Operands' shapes do not match"));
  return OK;
}

static status set_merged(struct op_call *c, const struct merged *m) {
  value_id indices, values;
  TRY(op_first_rows(c, m->indices, m->count, &indices));
  TRY(op_first_rows(c, m->values, m->count, &values));
  op_set_output(c, 0, indices);
  op_set_output(c, 1, values);
  return OK;
}

status build_sparse_add(struct op_call *c) {
  struct sparse a, b;
  struct merged m;
  value_id threshold;
  TRY(op_input(c, 6, &threshold));
  if (op_value(c, threshold)->rank != 0)
    return fail(INVALID_ARGUMENT, "The magnitude threshold must be a scalar");
  TRY(read_operands(c, &a, &b));
  TRY(merge_entries(c, &a, &b, COMBINE_ADD, threshold, &m));
  TRY(set_merged(c, &m));
  op_set_output(c, 2, op_dims_value(c, DTYPE_INT64, 1, a.dims, a.rank));
  return OK;
}

/* The larger or smaller of two, one of which may be the 0 that has no entry. */
status build_sparse_extremum(struct op_call *c) {
  struct sparse a, b;
  struct merged m;
  TRY(read_operands(c, &a, &b));
  if (a.rank == 0)
    return fail(INVALID_ARGUMENT, "Tensors must not be empty");
  TRY(merge_entries(c, &a, &b, OP_ROW(c, combine_row)->how, NO_VALUE, &m));
  return set_merged(c, &m);
}

/* ---- gradients: each entry of one list takes the gradient of the equal one of another ---- */

/* out[i] = grad[j] where entry j of `given` (with grads) equals entry i of `entries` less start; 0 where there is none. */
static status matching_grads(struct op_call *c, value_id grad, value_id given, value_id entries, value_id start, value_id *out) {
  struct flow_value g = *op_value(c, grad), from = *op_value(c, given), to = *op_value(c, entries);
  if (from.rank != 2 || to.rank != 2 || g.rank != 1)
    return fail(INVALID_ARGUMENT, "indices must be matrices and gradients a vector");
  TRY(op_equal_dims(c, from.dims[1], to.dims[1], "the rank of sparse indices"));
  TRY(op_equal_dims(c, from.dims[0], g.dims[0], "the number of gradients and of indices"));
  if (start && op_value(c, start)->rank != 1)
    return fail(INVALID_ARGUMENT, "the start of a slice must be a vector");
  if (start)
    TRY(op_equal_dims(c, from.dims[1], op_value(c, start)->dims[0], "the rank of sparse indices and of a start"));
  struct kb kb;
  kb_begin(&kb, c, g.dtype);
  uint32_t grads = kb_in(&kb, grad), a = kb_in(&kb, given), b = kb_in(&kb, entries), o = kb_out(&kb, g.dtype, 1, to.dims);
  expr_id one = kb_int(&kb, 1), count = kb_dim(&kb, from.dims[0]);
  uint32_t next = kb_local(&kb, kb_int(&kb, 0));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, to.dims[0]), j = kb_get(&kb, next);
  uint32_t order = kb_local(&kb, kb_int(&kb, -1)), open = kb_local(&kb, kb_lt(&kb, j, count));
  kb_while(&kb, kb_get(&kb, open));
  kb_set(&kb, order, compare_rows(&kb, a, j, b, i, from.dims[1], start));
  expr_id before = kb_lt(&kb, kb_get(&kb, order), kb_int(&kb, 0));
  kb_set(&kb, next, kb_select(&kb, before, kb_add(&kb, j, one), j));
  kb_set(&kb, open, kb_and(&kb, before, kb_lt(&kb, j, count)));
  kb_close(&kb, 1);
  kb_store(&kb, o, &i, f_const_as(&kb.f, g.dtype, 0));
  kb_if(&kb, kb_and(&kb, kb_lt(&kb, j, count), kb_eq(&kb, kb_get(&kb, order), kb_int(&kb, 0))));
  kb_store(&kb, o, &i, kb_load(&kb, grads, &j));
  kb_close(&kb, 2);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

status build_sparse_add_grad(struct op_call *c) {
  value_id grad, entries, sum, out;
  TRY(op_input(c, 0, &grad));
  TRY(op_input(c, 3, &sum));
  for (uint32_t i = 0; i < 2; i++) {
    TRY(op_input(c, i + 1, &entries));
    TRY(matching_grads(c, grad, sum, entries, NO_VALUE, &out));
    op_set_output(c, i, out);
  }
  return OK;
}

status build_sparse_slice_grad(struct op_call *c) {
  value_id grad, entries, start, given, out;
  TRY(op_input(c, 0, &grad));
  TRY(op_input(c, 1, &entries));
  TRY(op_input(c, 2, &start));
  TRY(op_input(c, 3, &given));
  TRY(matching_grads(c, grad, given, entries, start, &out));
  op_set_output(c, 0, out);
  return OK;
}

/* ---- SparseFillEmptyRows, RaggedFillEmptyRows ---- */

struct filled {
  dim rows, total;
  value_id offsets; /* i64 [rows]: where each row's entries begin */
};

/* How many entries each row has, at least one; whether it had none. */
static status count_rows(struct op_call *c, const struct sparse *s, struct filled *f) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t empty = kb_out(&kb, DTYPE_BOOL, 1, &f->rows), offsets = kb_out(&kb, DTYPE_INT64, 1, &f->rows),
           total = kb_out(&kb, DTYPE_INT64, 0, NULL);
  uint32_t counts = kb_scratch(&kb, DTYPE_INT64, 1, &f->rows), in = kb_in(&kb, s->indices);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1);
  kb_fill(&kb, counts, 1, &f->rows, real_element(zero));
  expr_id at[2] = {kb_for_dim(&kb, LOOP_SEQ, s->count), zero};
  expr_id row = kb_get(&kb, kb_local(&kb, kb_load(&kb, in, at).re));
  expr_id size = kb_dim(&kb, f->rows);
  kb_check_index(&kb, kb_in_range(&kb, row, size), "indices(%d, 0) is invalid: %d is not in [0, %d)", at[0], row, size);
  kb_store(&kb, counts, &row, real_element(kb_add(&kb, kb_load(&kb, counts, &row).re, one)));
  kb_close(&kb, 1);
  uint32_t sum = kb_local(&kb, zero);
  expr_id r = kb_for_dim(&kb, LOOP_SEQ, f->rows), n = kb_get(&kb, kb_local(&kb, kb_load(&kb, counts, &r).re));
  kb_store(&kb, offsets, &r, real_element(kb_get(&kb, sum)));
  kb_store(&kb, empty, &r, real_element(kb_eq(&kb, n, zero)));
  kb_set(&kb, sum, kb_add(&kb, kb_get(&kb, sum), expr_binary(kb.k, SCALAR_MAX, n, one)));
  kb_close(&kb, 1);
  kb_store(&kb, total, NULL, real_element(kb_get(&kb, sum)));
  op_set_output(c, 2, kb_value(&kb, empty));
  f->offsets = kb_value(&kb, offsets);
  value_id v = kb_value(&kb, total);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, &f->total);
}

/* Every row's place is first taken by the default; its entries then overwrite it. */
static status place_entries(struct op_call *c, const struct sparse *s, const struct filled *f, value_id filler) {
  enum dtype dtype = op_value(c, s->values)->dtype;
  dim dims[2] = {f->total, op_dim(c, s->rank)};
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t indices = kb_out(&kb, DTYPE_INT64, 2, dims), values = kb_out(&kb, dtype, 1, dims),
           places = kb_out(&kb, DTYPE_INT64, 1, &s->count);
  uint32_t next = kb_scratch(&kb, DTYPE_INT64, 1, &f->rows), offsets = kb_in(&kb, f->offsets);
  uint32_t in = kb_in(&kb, s->values), other = kb_in(&kb, filler);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1), index[LIMIT_RANK];
  expr_id r = kb_for_dim(&kb, LOOP_SEQ, f->rows), to = kb_get(&kb, kb_local(&kb, kb_load(&kb, offsets, &r).re));
  kb_store(&kb, next, &r, real_element(to));
  for (int d = 0; d < s->rank; d++)
    kb_store(&kb, indices, (expr_id[]){to, kb_int(&kb, d)}, real_element(d ? zero : r));
  kb_store(&kb, values, &to, kb_load(&kb, other, NULL));
  kb_close(&kb, 1);
  expr_id n = kb_for_dim(&kb, LOOP_SEQ, s->count);
  kb_sparse_index(&kb, s, n, index);
  to = kb_get(&kb, kb_local(&kb, kb_load(&kb, next, &index[0]).re));
  kb_store(&kb, next, &index[0], real_element(kb_add(&kb, to, one)));
  for (int d = 0; d < s->rank; d++)
    kb_store(&kb, indices, (expr_id[]){to, kb_int(&kb, d)}, real_element(index[d]));
  kb_store(&kb, values, &to, kb_load(&kb, in, &n));
  kb_store(&kb, places, &n, real_element(to));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, indices));
  op_set_output(c, 1, kb_value(&kb, values));
  op_set_output(c, 3, kb_value(&kb, places));
  return kb_finish_guarded(&kb);
}

status build_sparse_fill_empty_rows(struct op_call *c) {
  struct sparse s;
  struct filled f;
  value_id filler;
  TRY(sparse_input(c, 0, 1, 2, &s));
  TRY(op_input(c, 3, &filler));
  if (op_value(c, filler)->rank != 0)
    return fail(INVALID_ARGUMENT, "default_value must be a scalar");
  if (s.rank < 1)
    return fail(INVALID_ARGUMENT, "Dense shape cannot be empty.");
  TRY(sparse_dims(c, &s, "dense_shape"));
  f.rows = s.dims[0];
  TRY(count_rows(c, &s, &f));
  return place_entries(c, &s, &f, filler);
}

/* The same of a ragged tensor: the row of each value instead of indices. */
status build_ragged_fill_empty_rows(struct op_call *c) {
  struct sparse s = {.rank = 1};
  struct filled f;
  value_id rowids, rows, filler;
  dim *elements;
  int count;
  TRY(op_input(c, 0, &rowids));
  TRY(op_input(c, 1, &s.values));
  TRY(op_input(c, 2, &rows));
  TRY(op_input(c, 3, &filler));
  struct flow_value ids = *op_value(c, rowids), values = *op_value(c, s.values);
  if (ids.rank != 1 || values.rank != 1)
    return fail(INVALID_ARGUMENT, "%s must be a vector", ids.rank != 1 ? "value_rowids" : "values");
  if (op_value(c, rows)->rank != 0 || op_value(c, filler)->rank != 0)
    return fail(INVALID_ARGUMENT, "%s must be a scalar", op_value(c, rows)->rank != 0 ? "nrows" : "default_value");
  TRY(op_equal_dims(c, ids.dims[0], values.dims[0], "values and value_rowids must have the same size"));
  TRY(op_elements(c, rows, &elements, &count));
  dim matrix[2] = {ids.dims[0], op_dim(c, 1)};
  s.count = ids.dims[0];
  s.dims[0] = f.rows = elements[0];
  s.indices = op_alias(c, rowids, DTYPE_INT64, 2, matrix);
  TRY(op_require_le(c, op_dim(c, 0), f.rows, "nrows must not be negative: %d, %d"));
  TRY(count_rows(c, &s, &f));
  TRY(place_entries(c, &s, &f, filler));
  op_set_output(c, 0, op_alias(c, c->out[0].value, DTYPE_INT64, 1, &f.total));
  return OK;
}

status build_sparse_fill_empty_rows_grad(struct op_call *c) {
  value_id places, grad;
  TRY(op_input(c, 0, &places));
  TRY(op_input(c, 1, &grad));
  struct flow_value p = *op_value(c, places), g = *op_value(c, grad);
  if (p.rank != 1 || g.rank != 1)
    return fail(INVALID_ARGUMENT, "%s must be a vector", p.rank != 1 ? "reverse_index_map" : "grad_values");
  struct kb kb;
  kb_begin(&kb, c, g.dtype);
  uint32_t in = kb_in(&kb, places), grads = kb_in(&kb, grad), values = kb_out(&kb, g.dtype, 1, p.dims),
           filler = kb_out(&kb, g.dtype, 0, NULL);
  uint32_t seen = kb_scratch(&kb, DTYPE_INT64, 1, g.dims);
  expr_id zero = kb_int(&kb, 0);
  kb_fill(&kb, seen, 1, g.dims, real_element(zero));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, p.dims[0]), from = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, in, &i))));
  kb_check(&kb, kb_in_range(&kb, from, kb_dim(&kb, g.dims[0])), INVALID_ARGUMENT, "Elements in reverse index must be in [0, %d) but got %d",
           kb_dim(&kb, g.dims[0]), from);
  kb_store(&kb, values, &i, kb_load(&kb, grads, &from));
  kb_store(&kb, seen, &from, real_element(kb_int(&kb, 1)));
  kb_close(&kb, 1);
  kb_store(&kb, filler, NULL, f_const_as(&kb.f, g.dtype, 0));
  expr_id j = kb_for_dim(&kb, LOOP_SEQ, g.dims[0]);
  kb_if(&kb, kb_eq(&kb, kb_load(&kb, seen, &j).re, zero));
  kb_store(&kb, filler, NULL, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, filler, NULL), kb_load(&kb, grads, &j)));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, values));
  op_set_output(c, 1, kb_value(&kb, filler));
  return kb_finish_guarded(&kb);
}
