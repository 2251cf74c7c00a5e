/* ops_sparse_dense.c: sparse tensors with dense ones: products, sums, element-wise, reductions, softmax. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/ops/sparse/sparse.h"

/* ---- SparseTensorDenseMatMul ---- */

struct sparse_product {
  struct sparse a;
  value_id b;
  bool adjoint_a, adjoint_b;
  dim rows, columns, inner;
};

static status product_dims(struct op_call *c, struct sparse_product *p) {
  struct flow_value b = *op_value(c, p->b);
  if (p->a.rank != 2 || b.rank != 2)
    return fail(INVALID_ARGUMENT, "Tensor '%s' is not a matrix", p->a.rank != 2 ? "a" : "b");
  TRY(sparse_dims(c, &p->a, "a_shape"));
  p->rows = p->a.dims[p->adjoint_a];
  p->inner = p->a.dims[!p->adjoint_a];
  p->columns = b.dims[!p->adjoint_b];
  dim other = b.dims[p->adjoint_b];
  if (dim_equal(op_dims(c), p->inner, other) == 0)
    return fail(INVALID_ARGUMENT, "Cannot multiply A and B because inner dimension does not match: %s vs. %s.  Did you forget a transpose?",
                dim_text(op_dims(c), p->inner), dim_text(op_dims(c), other));
  return op_equal_dims(c, p->inner, other, "Cannot multiply A and B because inner dimension does not match");
}

/* out[i, :] += a * b[k, :] for each entry in turn */
status build_sparse_tensor_dense_matmul(struct op_call *c) {
  struct sparse_product p = {.adjoint_a = node_attr_int(c->node, "adjoint_a", 0) != 0,
                             .adjoint_b = node_attr_int(c->node, "adjoint_b", 0) != 0};
  TRY(sparse_input(c, 0, 1, 2, &p.a));
  TRY(op_input(c, 3, &p.b));
  TRY(product_dims(c, &p));
  enum dtype dtype = op_value(c, p.b)->dtype;
  dim dims[2] = {p.rows, p.columns};
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t values = kb_in(&kb, p.a.values), b = kb_in(&kb, p.b), out = kb_out(&kb, dtype, 2, dims);
  kb_fill(&kb, out, 2, dims, f_const_as(&kb.f, dtype, 0));
  expr_id n = kb_for_dim(&kb, LOOP_SEQ, p.a.count), index[LIMIT_RANK];
  kb_sparse_index_checked(&kb, &p.a, n, index);
  expr_id i = index[p.adjoint_a], k = index[!p.adjoint_a], j = kb_for_dim(&kb, LOOP_PAR, p.columns);
  expr_id to[2] = {i, j}, from[2] = {p.adjoint_b ? j : k, p.adjoint_b ? k : j};
  struct element x = kb_load(&kb, values, &n), y = kb_load(&kb, b, from);
  x = p.adjoint_a ? f_conj(&kb.f, x) : x;
  y = p.adjoint_b ? f_conj(&kb.f, y) : y;
  kb_store(&kb, out, to, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, out, to), f_binary(&kb.f, SCALAR_MUL, x, y)));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- SparseTensorDenseAdd ---- */

status build_sparse_tensor_dense_add(struct op_call *c) {
  struct sparse a;
  value_id b;
  TRY(sparse_input(c, 0, 1, 2, &a));
  TRY(op_input(c, 3, &b));
  struct flow_value x = *op_value(c, b);
  if (x.rank != a.rank)
    return fail(INVALID_ARGUMENT, "Two operands have different ranks; received: %d and %d", a.rank, x.rank);
  TRY(sparse_dims(c, &a, "a_shape"));
  for (int d = 0; d < a.rank; d++)
    TRY(op_equal_dims(c, a.dims[d], x.dims[d], "Dimensions of the two operands"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, b), values = kb_in(&kb, a.values), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  kb_store(&kb, out, at, kb_load(&kb, in, at));
  kb_close(&kb, x.rank);
  expr_id n = kb_for_dim(&kb, LOOP_SEQ, a.count);
  kb_sparse_index_checked(&kb, &a, n, index);
  kb_store(&kb, out, index, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, out, index), kb_load(&kb, values, &n)));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- SparseDenseCwise*: the dense side is broadcast to the sparse one's shape ---- */

/* A guard: each dimension of the dense operand is 1 or the sparse one's. */
static status check_broadcast(struct op_call *c, const struct flow_value *x, const struct sparse *a) {
  struct kb guard;
  guard_begin(&guard, c);
  for (int d = 0; d < x->rank; d++) {
    expr_id n = kb_dim(&guard, x->dims[d]), wanted = kb_dim(&guard, a->dims[a->rank - x->rank + d]);
    kb_check(&guard, kb_or(&guard, kb_eq(&guard, n, kb_int(&guard, 1)), kb_eq(&guard, n, wanted)), INVALID_ARGUMENT,
             "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible dimensions %d and %d", n, wanted);
  }
  return guard_finish(&guard);
}

status build_sparse_dense_cwise(struct op_call *c) {
  struct sparse a;
  value_id dense;
  TRY(sparse_input(c, 0, 1, 2, &a));
  TRY(op_input(c, 3, &dense));
  TRY(sparse_dims(c, &a, "sp_shape"));
  TRY(sparse_check_size(c, &a, INVALID_ARGUMENT));
  struct flow_value x = *op_value(c, dense);
  if (x.rank > a.rank)
    return fail(INVALID_ARGUMENT,
                "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: dense has rank %d, sparse %d", x.rank,
                a.rank);
  TRY(check_broadcast(c, &x, &a));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t values = kb_in(&kb, a.values), in = kb_in(&kb, dense), out = kb_out(&kb, x.dtype, 1, &a.count);
  expr_id n = kb_for_dim(&kb, LOOP_PAR, a.count), index[LIMIT_RANK];
  kb_sparse_index_checked(&kb, &a, n, index);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1), at[LIMIT_RANK];
  for (int d = 0; d < x.rank; d++)
    at[d] = kb_select(&kb, kb_eq(&kb, kb_dim(&kb, x.dims[d]), one), zero, index[a.rank - x.rank + d]);
  struct element y = kb_load(&kb, in, at);
  kb_store(&kb, out, &n, kb_combine(&kb, OP_ROW(c, combine_row)->how, kb_load(&kb, values, &n), y));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- SparseReduceSum, SparseReduceMax: a dense result; what has no entry is 0 ---- */

/* The axes that are reduced: of one alone the step may know which. */
static status reduced_axes(struct op_call *c, int rank, bool *reduced) {
  value_id v;
  int64_t one, *axes = &one;
  int count = 1;
  TRY(op_input(c, 3, &v));
  if (op_value(c, v)->rank == 1)
    TRY(op_vector_length(c, v, "reduction_axes", &count));
  TRY(count == 1 ? op_const_axis(c, v, "reduction_axes", rank, &one) : op_const_ints(c, v, "reduction_axes", &axes, &count));
  for (int d = 0; d < rank; d++)
    reduced[d] = false;
  for (int i = 0; i < count; i++) {
    if (axes[i] < -rank || axes[i] >= rank)
      return fail(INVALID_ARGUMENT, "Invalid reduction dimension %lld, for input with %d dimensions.", (long long)axes[i], rank);
    reduced[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
  }
  return OK;
}

/* What is reduced, and what is left of its shape. */
struct reduction {
  struct sparse a;
  bool reduced[LIMIT_RANK], keep;
  int rank;
  dim dims[LIMIT_RANK];
};

static status read_reduction(struct op_call *c, struct reduction *r) {
  r->keep = node_attr_int(c->node, "keep_dims", 0) != 0;
  r->rank = 0;
  TRY(sparse_input(c, 0, 1, 2, &r->a));
  TRY(reduced_axes(c, r->a.rank, r->reduced));
  TRY(sparse_dims(c, &r->a, "input_shape"));
  for (int d = 0; d < r->a.rank; d++)
    if (!r->reduced[d] || r->keep)
      r->dims[r->rank++] = r->reduced[d] ? op_dim(c, 1) : r->a.dims[d];
  return sparse_check_size(c, &r->a, INVALID_ARGUMENT);
}

/* The first entry of a place is taken as it is: a flag for each place tells. */
static void reduce_entries(struct kb *kb, const struct reduction *r, uint32_t out, uint32_t flags, enum combine how) {
  const struct sparse *a = &r->a;
  expr_id n = kb_for_dim(kb, LOOP_SEQ, a->count), index[LIMIT_RANK], to[LIMIT_RANK];
  kb_sparse_index_checked(kb, a, n, index);
  int rank = 0;
  for (int d = 0; d < a->rank; d++)
    if (!r->reduced[d] || r->keep)
      to[rank++] = r->reduced[d] ? kb_int(kb, 0) : index[d];
  struct element x = kb_load(kb, kb_in(kb, a->values), &n);
  struct element seen = real_element(kb_ne(kb, kb_load(kb, flags, to).re, kb_int(kb, 0)));
  kb_store(kb, out, to, f_select(&kb->f, seen, kb_combine_last(kb, how, kb_load(kb, out, to), x), x));
  kb_store(kb, flags, to, real_element(kb_int(kb, 1)));
  kb_close(kb, 1);
}

status build_sparse_reduce(struct op_call *c) {
  struct reduction r;
  TRY(read_reduction(c, &r));
  enum dtype dtype = op_value(c, r.a.values)->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t out = kb_out(&kb, dtype, r.rank, r.dims), flags = kb_scratch(&kb, DTYPE_INT64, r.rank, r.dims);
  kb_fill(&kb, out, r.rank, r.dims, f_const_as(&kb.f, dtype, 0));
  kb_fill(&kb, flags, r.rank, r.dims, real_element(kb_int(&kb, 0)));
  reduce_entries(&kb, &r, out, flags, OP_ROW(c, combine_row)->how);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- the same with a sparse result: an entry for each place that has one ---- */

/* key[n]: the number of entry n's place among those that are kept. */
static uint32_t reduced_keys(struct kb *kb, const struct sparse *a, const bool *reduced) {
  uint32_t keys = kb_scratch(kb, DTYPE_INT64, 1, &a->count);
  expr_id n = kb_for_dim(kb, LOOP_SEQ, a->count), index[LIMIT_RANK], key = kb_int(kb, 0);
  kb_sparse_index_checked(kb, a, n, index);
  for (int d = 0; d < a->rank; d++)
    if (!reduced[d])
      key = kb_add(kb, kb_mul(kb, key, kb_dim(kb, a->dims[d])), index[d]);
  kb_store(kb, keys, &n, real_element(key));
  kb_close(kb, 1);
  return keys;
}

/* All places, of which the first *count hold; entries in the order of their places, equal ones combined. */
static status reduce_sorted(struct op_call *c, const struct reduction *r, value_id *out, dim *count) {
  const struct sparse *a = &r->a;
  enum dtype dtype = op_value(c, a->values)->dtype;
  dim dims[2] = {a->count, op_dim(c, r->rank)};
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t indices = kb_out(&kb, DTYPE_INT64, 2, dims), values = kb_out(&kb, dtype, 1, dims), total = kb_out(&kb, DTYPE_INT64, 0, NULL);
  kb_fill(&kb, indices, 2, dims, real_element(kb_int(&kb, 0)));
  kb_fill(&kb, values, 1, dims, f_const_as(&kb.f, dtype, 0));
  uint32_t keys = reduced_keys(&kb, a, r->reduced), perm = kb_sort_keys(&kb, keys, a->count), in = kb_in(&kb, a->values);
  uint32_t last = kb_local(&kb, kb_int(&kb, -1)), previous = kb_local(&kb, kb_int(&kb, -1));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, a->count), n = kb_get(&kb, kb_local(&kb, kb_load(&kb, perm, &i).re)), index[LIMIT_RANK];
  expr_id key = kb_get(&kb, kb_local(&kb, kb_load(&kb, keys, &i).re));
  expr_id first = kb_get(&kb, kb_local(&kb, kb_ne(&kb, key, kb_get(&kb, previous))));
  kb_set(&kb, previous, key);
  kb_set(&kb, last, kb_add(&kb, kb_get(&kb, last), kb_select(&kb, first, kb_int(&kb, 1), kb_int(&kb, 0))));
  expr_id to = kb_get(&kb, last), at[2] = {to, NO_EXPR};
  kb_sparse_index(&kb, a, n, index);
  for (int d = 0, place = 0; d < a->rank; d++) {
    at[1] = kb_int(&kb, place);
    if (!r->reduced[d])
      kb_store(&kb, indices, at, real_element(index[d]));
    place += !r->reduced[d] || r->keep;
  }
  struct element x = kb_load(&kb, in, &n), sum = kb_combine_last(&kb, OP_ROW(c, combine_row)->how, kb_load(&kb, values, &to), x);
  kb_store(&kb, values, &to, f_select(&kb.f, real_element(first), x, sum));
  kb_close(&kb, 1);
  kb_store(&kb, total, NULL, real_element(kb_add(&kb, kb_get(&kb, last), kb_int(&kb, 1))));
  out[0] = kb_value(&kb, indices);
  out[1] = kb_value(&kb, values);
  value_id v = kb_value(&kb, total);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, count);
}

status build_sparse_reduce_sparse(struct op_call *c) {
  struct reduction r;
  value_id all[2], out;
  dim count;
  TRY(read_reduction(c, &r));
  TRY(reduce_sorted(c, &r, all, &count));
  for (uint32_t i = 0; i < 2; i++) {
    TRY(op_first_rows(c, all[i], count, &out));
    op_set_output(c, i, out);
  }
  op_set_output(c, 2, op_dims_value(c, DTYPE_INT64, 1, r.dims, r.rank));
  return OK;
}

/* ---- SparseSoftmax: over the last dimension; entries of a row are neighbours ---- */

/* Numbers the rows: groups[n] is the number of entry n's row; a new one begins where an index but the last changes. */
static void number_rows(struct kb *kb, const struct sparse *a, uint32_t groups) {
  uint32_t group = kb_local(kb, kb_int(kb, -1)), previous = kb_local(kb, kb_int(kb, -1));
  expr_id n = kb_for_dim(kb, LOOP_SEQ, a->count), index[LIMIT_RANK], row = kb_int(kb, 0);
  kb_sparse_index_checked(kb, a, n, index);
  for (int d = 0; d + 1 < a->rank; d++)
    row = kb_add(kb, kb_mul(kb, row, kb_dim(kb, a->dims[d])), index[d]);
  kb_if(kb, kb_ne(kb, row, kb_get(kb, previous)));
  kb_set(kb, group, kb_add(kb, kb_get(kb, group), kb_int(kb, 1)));
  kb_set(kb, previous, row);
  kb_close(kb, 1);
  kb_store(kb, groups, &n, real_element(kb_get(kb, group)));
  kb_close(kb, 1);
}

status build_sparse_softmax(struct op_call *c) {
  struct sparse a;
  TRY(sparse_input(c, 0, 1, 2, &a));
  if (a.rank < 2)
    return fail(INVALID_ARGUMENT, "Input should have rank >= 2, but got rank %d", a.rank);
  TRY(sparse_dims(c, &a, "sp_shape"));
  TRY(sparse_check_size(c, &a, INVALID_ARGUMENT));
  enum dtype dtype = op_value(c, a.values)->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t in = kb_in(&kb, a.values), out = kb_out(&kb, dtype, 1, &a.count);
  uint32_t groups = kb_scratch(&kb, DTYPE_INT64, 1, &a.count), top = kb_scratch(&kb, dtype, 1, &a.count),
           sum = kb_scratch(&kb, dtype, 1, &a.count);
  kb_fill(&kb, top, 1, &a.count, f_lowest(&kb.f));
  kb_fill(&kb, sum, 1, &a.count, f_const_as(&kb.f, dtype, 0));
  number_rows(&kb, &a, groups);
  expr_id n = kb_for_dim(&kb, LOOP_SEQ, a.count), g = kb_get(&kb, kb_local(&kb, kb_load(&kb, groups, &n).re));
  kb_store(&kb, top, &g, f_binary(&kb.f, SCALAR_MAX, kb_load(&kb, top, &g), kb_load(&kb, in, &n)));
  kb_close(&kb, 1);
  n = kb_for_dim(&kb, LOOP_SEQ, a.count), g = kb_get(&kb, kb_local(&kb, kb_load(&kb, groups, &n).re));
  struct element e = f_unary(&kb.f, SCALAR_EXP, f_binary(&kb.f, SCALAR_SUB, kb_load(&kb, in, &n), kb_load(&kb, top, &g)));
  kb_store(&kb, out, &n, e);
  kb_store(&kb, sum, &g, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, sum, &g), kb_load(&kb, out, &n)));
  kb_close(&kb, 1);
  n = kb_for_dim(&kb, LOOP_SEQ, a.count), g = kb_get(&kb, kb_local(&kb, kb_load(&kb, groups, &n).re));
  kb_store(&kb, out, &n, f_binary(&kb.f, SCALAR_DIV, kb_load(&kb, out, &n), kb_load(&kb, sum, &g)));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
