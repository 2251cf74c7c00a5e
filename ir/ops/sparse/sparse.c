/* sparse.c: reading sparse tensors, their indices in kernels, and sorting by them (bottom-up merge sort in scratch memory). */
#include "ir/ops/sparse/sparse.h"

#include <string.h>

status sparse_input(struct op_call *c, uint32_t indices, uint32_t values, uint32_t shape, struct sparse *out) {
  *out = (struct sparse){0};
  TRY(op_input(c, indices, &out->indices));
  TRY(op_input(c, shape, &out->shape));
  struct flow_value i = *op_value(c, out->indices), s = *op_value(c, out->shape);
  if (i.rank != 2)
    return fail(INVALID_ARGUMENT, "Input sparse indices should be a matrix but received shape %s", op_shape_text(c, i.rank, i.dims));
  if (s.rank != 1)
    return fail(INVALID_ARGUMENT, "Input sparse shape should be a vector but received shape %s", op_shape_text(c, s.rank, s.dims));
  TRY(op_equal_dims(c, i.dims[1], s.dims[0], "the rank of sparse indices and shape"));
  int64_t rank = op_dim_value(c, i.dims[1]);
  if (rank < 0)
    TRY(op_const_size(c, s.dims[0], "the rank of a sparse tensor", &rank));
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a sparse tensor whose rank is above %d", LIMIT_RANK);
  out->rank = (int)rank;
  out->count = i.dims[0];
  if (values == UINT32_MAX)
    return OK;
  TRY(op_input(c, values, &out->values));
  struct flow_value v = *op_value(c, out->values);
  if (v.rank != 1)
    return fail(INVALID_ARGUMENT, "Input sparse values should be a vector but received shape %s", op_shape_text(c, v.rank, v.dims));
  if (dim_equal(op_dims(c), v.dims[0], i.dims[0]) == 0)
    return fail(INVALID_ARGUMENT, "Number of values must match first dimension of indices. Got %s values, indices shape: %s",
                op_shape_text(c, v.rank, v.dims), op_shape_text(c, i.rank, i.dims));
  return op_equal_dims(c, v.dims[0], i.dims[0], "Number of values must match first dimension of indices");
}

status sparse_dims(struct op_call *c, struct sparse *s, const char *what) {
  int rank;
  return op_shape_dims(c, s->shape, what, &rank, s->dims);
}

expr_id kb_sparse_has_size(struct kb *kb, const struct sparse *s) {
  expr_id one = kb_int(kb, 1), most = kb_int(kb, INT64_MAX);
  uint32_t product = kb_local(kb, one), fits = kb_local(kb, kb_eq(kb, one, one));
  for (int d = 0; d < s->rank; d++) { /* after a 0 nothing wraps */
    expr_id n = kb_dim(kb, s->dims[d]), size = kb_get(kb, kb_local(kb, expr_binary(kb->k, SCALAR_MAX, n, one)));
    kb_set(kb, fits, kb_and(kb, kb_get(kb, fits), kb_le(kb, kb_get(kb, product), kb_div(kb, most, size))));
    kb_set(kb, product, kb_mul(kb, kb_get(kb, product), n));
  }
  return kb_get(kb, fits);
}

status sparse_check_size(struct op_call *c, const struct sparse *s, status code) {
  struct kb guard;
  guard_begin(&guard, c);
  kb_check(&guard, kb_sparse_has_size(&guard, s), code, "Encountered overflow when multiplying the sizes of a sparse tensor", NO_EXPR,
           NO_EXPR);
  return guard_finish(&guard);
}

void kb_sparse_index(struct kb *kb, const struct sparse *s, expr_id row, expr_id *index) {
  uint32_t in = kb_in(kb, s->indices);
  for (int d = 0; d < s->rank; d++) {
    expr_id at[2] = {row, kb_int(kb, d)};
    index[d] = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, in, at))));
  }
}

void kb_sparse_index_checked(struct kb *kb, const struct sparse *s, expr_id row, expr_id *index) {
  kb_sparse_index(kb, s, row, index);
  for (int d = 0; d < s->rank; d++)
    kb_check(kb, kb_in_range(kb, index[d], kb_dim(kb, s->dims[d])), INVALID_ARGUMENT,
             arena_printf(op_arena(kb->c), "Sparse index [%%d,%d] = %%d is out of bounds: need 0 <= index < %s", d,
                          op_shape_text(kb->c, s->rank, s->dims)),
             row, index[d]);
}

expr_id kb_sparse_flat(struct kb *kb, const struct sparse *s, const expr_id *index) {
  expr_id flat = kb_int(kb, 0);
  for (int d = 0; d < s->rank; d++)
    flat = kb_add(kb, kb_mul(kb, flat, kb_dim(kb, s->dims[d])), index[d]);
  return flat;
}

status op_pick_rows(struct op_call *c, value_id v, value_id picks, dim first, dim count, value_id *out) {
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[0] = count;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), rows = kb_in(&kb, picks), o = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  memcpy(from, at, sizeof at);
  expr_id place = kb_add(&kb, kb_dim(&kb, first), at[0]);
  from[0] = kb_load(&kb, rows, &place).re;
  kb_store(&kb, o, at, kb_load(&kb, in, from));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

status op_first_rows(struct op_call *c, value_id v, dim count, value_id *out) {
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[0] = count;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  kb_store(&kb, o, at, kb_load(&kb, in, at));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* ---- sorting ---- */

struct sort {
  uint32_t keys, perm, other_keys, other_perm;
  expr_id n;
};

static void copy_back(struct kb *kb, const struct sort *s) {
  expr_id i = kb_for(kb, LOOP_SEQ, s->n);
  kb_store(kb, s->keys, &i, kb_load(kb, s->other_keys, &i));
  kb_store(kb, s->perm, &i, kb_load(kb, s->other_perm, &i));
  kb_close(kb, 1);
}

/* other[to] = what is at the local's place, which moves on */
static void take_next(struct kb *kb, const struct sort *s, uint32_t place, expr_id to) {
  expr_id from = kb_get(kb, place);
  kb_store(kb, s->other_keys, &to, kb_load(kb, s->keys, &from));
  kb_store(kb, s->other_perm, &to, kb_load(kb, s->perm, &from));
  kb_set(kb, place, kb_add(kb, from, kb_int(kb, 1)));
}

/* Merges keys[begin, middle) and [middle, end): equal ones from the left first. */
static void merge_runs(struct kb *kb, const struct sort *s, expr_id begin, expr_id middle, expr_id end) {
  uint32_t left = kb_local(kb, begin), right = kb_local(kb, middle);
  expr_id to = kb_add(kb, begin, kb_for(kb, LOOP_SEQ, kb_sub(kb, end, begin)));
  uint32_t from_left = kb_local(kb, kb_lt(kb, kb_get(kb, left), middle));
  expr_id both = kb_and(kb, kb_get(kb, from_left), kb_lt(kb, kb_get(kb, right), end));
  kb_if(kb, both);
  expr_id l = kb_get(kb, left), r = kb_get(kb, right);
  kb_set(kb, from_left, kb_le(kb, kb_load(kb, s->keys, &l).re, kb_load(kb, s->keys, &r).re));
  kb_close(kb, 1);
  kb_if(kb, kb_get(kb, from_left));
  take_next(kb, s, left, to);
  kb_else(kb);
  take_next(kb, s, right, to);
  kb_close(kb, 2);
}

uint32_t kb_sort_keys(struct kb *kb, uint32_t keys, dim count) {
  struct sort s = {.keys = keys,
                   .perm = kb_scratch(kb, DTYPE_INT64, 1, &count),
                   .other_keys = kb_scratch(kb, DTYPE_INT64, 1, &count),
                   .other_perm = kb_scratch(kb, DTYPE_INT64, 1, &count),
                   .n = kb_dim(kb, count)};
  expr_id i = kb_for(kb, LOOP_SEQ, s.n), one = kb_int(kb, 1);
  kb_store(kb, s.perm, &i, real_element(i));
  kb_close(kb, 1);
  uint32_t width = kb_local(kb, one);
  kb_while(kb, kb_lt(kb, kb_get(kb, width), s.n));
  expr_id w = kb_get(kb, width), pair = kb_add(kb, w, w);
  expr_id pairs = kb_div(kb, kb_add(kb, s.n, kb_sub(kb, pair, one)), pair);
  expr_id begin = kb_get(kb, kb_local(kb, kb_mul(kb, kb_for(kb, LOOP_SEQ, pairs), pair)));
  expr_id middle = kb_get(kb, kb_local(kb, expr_binary(kb->k, SCALAR_MIN, kb_add(kb, begin, w), s.n)));
  expr_id end = kb_get(kb, kb_local(kb, expr_binary(kb->k, SCALAR_MIN, kb_add(kb, begin, pair), s.n)));
  merge_runs(kb, &s, begin, middle, end);
  kb_close(kb, 1);
  copy_back(kb, &s);
  kb_set(kb, width, pair);
  kb_close(kb, 1);
  return s.perm;
}
