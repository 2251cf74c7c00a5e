/* ops_ragged.c: ragged tensors: values with row partitions around them. RaggedRange, RaggedGather, RaggedTensorToSparse,
 * RaggedTensorToTensor.
 *
 * A partition is taken as two lists over its children: the row each belongs to (parent) and its place there (place). The
 * index of a value is then a chain of loads, whatever the partitions were written as. */
#include <string.h>

#include "ir/ops/sparse/sparse.h"

#define LEVELS_MAX LIMIT_RANK

struct level {
  dim rows, children;
  value_id parent, place; /* i64 [children] */
  dim longest;            /* row */
};

/* ---- partitions ---- */

static status finish_level(struct kb *kb, struct level *l, uint32_t parent, uint32_t place, uint32_t longest) {
  l->parent = kb_value(kb, parent);
  l->place = kb_value(kb, place);
  value_id v = kb_value(kb, longest);
  struct op_call *c = kb->c;
  TRY(kb_finish_guarded(kb));
  return op_bound_dims(c, v, 1, &l->longest);
}

static status require_split(struct op_call *c, value_id splits) {
  return op_require_le(c, op_dim(c, 1), op_value(c, splits)->dims[0], "ragged splits need at least %d element, not %d");
}

/* splits [rows + 1]: row r has the children splits[r] .. splits[r + 1]. */
static status level_of_splits(struct op_call *c, value_id splits, dim children, struct level *l) {
  struct flow_value s = *op_value(c, splits);
  if (s.rank != 1)
    return fail(INVALID_ARGUMENT, "ragged splits must be a vector, not of shape %s", op_shape_text(c, s.rank, s.dims));
  TRY(require_split(c, splits));
  l->rows = dim_sub(op_dims(c), s.dims[0], op_dim(c, 1));
  l->children = children;
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, splits), parent = kb_out(&kb, DTYPE_INT64, 1, &children), place = kb_out(&kb, DTYPE_INT64, 1, &children);
  uint32_t longest = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1), n = kb_dim(&kb, children);
  uint32_t most = kb_local(&kb, zero), end = kb_local(&kb, zero);
  expr_id r = kb_for_dim(&kb, LOOP_SEQ, l->rows), after = kb_add(&kb, r, one);
  expr_id begin = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, in, &r))));
  kb_check(&kb, kb_eq(&kb, begin, kb_get(&kb, end)), INVALID_ARGUMENT, "ragged splits must begin with 0: %d is %d", r, begin);
  kb_set(&kb, end, kb_index(&kb, kb_load(&kb, in, &after)));
  expr_id sorted = kb_and(&kb, kb_le(&kb, begin, kb_get(&kb, end)), kb_le(&kb, kb_get(&kb, end), n));
  kb_check(&kb, sorted, INVALID_ARGUMENT, "ragged splits must not decrease, nor be above the number of values: %d after %d",
           kb_get(&kb, end), begin);
  expr_id count = kb_sub(&kb, kb_get(&kb, end), begin);
  kb_set(&kb, most, expr_binary(kb.k, SCALAR_MAX, kb_get(&kb, most), count));
  expr_id i = kb_for(&kb, LOOP_SEQ, count), to = kb_add(&kb, begin, i);
  kb_store(&kb, parent, &to, real_element(r));
  kb_store(&kb, place, &to, real_element(i));
  kb_close(&kb, 2);
  kb_check(&kb, kb_eq(&kb, kb_get(&kb, end), n), INVALID_ARGUMENT, "ragged splits end at %d; there are %d values", kb_get(&kb, end), n);
  kb_store(&kb, longest, NULL, real_element(kb_get(&kb, most)));
  return finish_level(&kb, l, parent, place, longest);
}

/* rowids [children], ascending: the row of each child. */
static status level_of_rowids(struct op_call *c, value_id rowids, dim rows, struct level *l) {
  struct flow_value ids = *op_value(c, rowids);
  if (ids.rank != 1)
    return fail(INVALID_ARGUMENT, "value rowids must be a vector, not of shape %s", op_shape_text(c, ids.rank, ids.dims));
  l->rows = rows;
  l->children = ids.dims[0];
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, rowids), parent = kb_out(&kb, DTYPE_INT64, 1, ids.dims), place = kb_out(&kb, DTYPE_INT64, 1, ids.dims);
  uint32_t longest = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1);
  uint32_t most = kb_local(&kb, zero), previous = kb_local(&kb, kb_int(&kb, -1)), next = kb_local(&kb, zero);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, ids.dims[0]), row = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, in, &i))));
  expr_id fits = kb_and(&kb, kb_in_range(&kb, row, kb_dim(&kb, rows)), kb_le(&kb, kb_get(&kb, previous), row));
  kb_check(&kb, fits, INVALID_ARGUMENT, "value rowids must ascend below the number of rows: %d after %d", row, kb_get(&kb, previous));
  kb_set(&kb, next, kb_select(&kb, kb_eq(&kb, row, kb_get(&kb, previous)), kb_get(&kb, next), zero));
  kb_store(&kb, parent, &i, real_element(row));
  kb_store(&kb, place, &i, real_element(kb_get(&kb, next)));
  kb_set(&kb, next, kb_add(&kb, kb_get(&kb, next), one));
  kb_set(&kb, most, expr_binary(kb.k, SCALAR_MAX, kb_get(&kb, most), kb_get(&kb, next)));
  kb_set(&kb, previous, row);
  kb_close(&kb, 1);
  kb_store(&kb, longest, NULL, real_element(kb_get(&kb, most)));
  return finish_level(&kb, l, parent, place, longest);
}

struct partition {
  value_id v; /* splits, or else rowids */
  bool is_splits;
};

/* What splits end with: the only word of how many rows a partition behind them has that is written as rowids. */
static status splits_end(struct op_call *c, value_id splits, dim *end) {
  TRY(require_split(c, splits));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t out = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id last = kb_dim(&kb, dim_sub(op_dims(c), op_value(c, splits)->dims[0], op_dim(c, 1)));
  kb_store(&kb, out, NULL, kb_load(&kb, kb_in(&kb, splits), &last));
  value_id v = kb_value(&kb, out);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, end);
}

/* Nested partitions around values with `total` rows; `rows`: of the first, where that has rowids. */
static status nested_levels(struct op_call *c, const struct partition *p, int count, dim rows, dim total, struct level *levels) {
  for (int i = 0; i < count; i++) {
    const struct partition *next = i + 1 < count ? &p[i + 1] : NULL;
    dim children = total;
    if (next && next->is_splits)
      children = dim_sub(op_dims(c), op_value(c, next->v)->dims[0], op_dim(c, 1));
    else if (next && p[i].is_splits)
      TRY(splits_end(c, p[i].v, &children));
    TRY(p[i].is_splits ? level_of_splits(c, p[i].v, children, &levels[i]) : level_of_rowids(c, p[i].v, rows, &levels[i]));
    if (!p[i].is_splits && (!next || next->is_splits))
      TRY(op_equal_dims(c, levels[i].children, children, "the number of rowids and of what they partition"));
    rows = levels[i].children;
  }
  return OK;
}

static status take_partition(struct op_call *c, uint32_t input, bool is_splits, struct partition *out) {
  *out = (struct partition){.is_splits = is_splits};
  TRY(op_input(c, input, &out->v));
  return op_value(c, out->v)->rank == 1 ? OK : fail(INVALID_ARGUMENT, "ragged %s must be vectors", is_splits ? "splits" : "rowids");
}

/* Nested splits from input `first` on, `count` of them. */
static status nested_splits(struct op_call *c, uint32_t first, int count, dim total, struct level *levels) {
  struct partition p[LEVELS_MAX];
  if (count < 1 || count > LEVELS_MAX)
    return fail(UNIMPLEMENTED, "%d ragged dimensions", count);
  for (int i = 0; i < count; i++)
    TRY(take_partition(c, first + (uint32_t)i, true, &p[i]));
  return nested_levels(c, p, count, NO_DIM, total, levels);
}

/* index[0 .. count]: the places of value v, from the outermost row in. */
static void ragged_index(struct kb *kb, const struct level *levels, int count, expr_id v, expr_id *index) {
  for (int i = count - 1; i >= 0; i--) {
    index[i + 1] = kb_get(kb, kb_local(kb, kb_load(kb, kb_in(kb, levels[i].place), &v).re));
    v = kb_get(kb, kb_local(kb, kb_load(kb, kb_in(kb, levels[i].parent), &v).re));
  }
  index[0] = v;
}

/* ---- RaggedTensorToSparse ---- */

status build_ragged_to_sparse(struct op_call *c) {
  int count = (int)node_attr_int(c->node, "RAGGED_RANK", 1);
  struct level levels[LEVELS_MAX];
  value_id v;
  TRY(op_input(c, (uint32_t)count, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 1)
    return fail(INVALID_ARGUMENT, "rt_dense_values must have rank 1 at least");
  TRY(nested_splits(c, 0, count, x.dims[0], levels));
  int rank = count + x.rank;
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a sparse tensor of rank %d", rank);
  dim total = op_count(c, x.rank, x.dims), inner = op_count(c, x.rank - 1, x.dims + 1), dims[2] = {total, op_dim(c, rank)};
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t out = kb_out(&kb, DTYPE_INT64, 2, dims);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, total), size = kb_dim(&kb, inner), index[2 * LIMIT_RANK];
  ragged_index(&kb, levels, count, kb_div(&kb, i, size), index);
  expr_id left = kb_mod(&kb, i, size);
  for (int d = x.rank - 1; d > 0; d--) {
    index[count + d] = kb_mod(&kb, left, kb_dim(&kb, x.dims[d]));
    left = kb_div(&kb, left, kb_dim(&kb, x.dims[d]));
  }
  for (int d = 0; d < rank; d++)
    kb_store(&kb, out, (expr_id[]){i, kb_int(&kb, d)}, real_element(index[d]));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, out));
  TRY(kb_finish_guarded(&kb));
  op_set_output(c, 1, op_alias(c, v, x.dtype, 1, &total));
  dim shape[LIMIT_RANK] = {levels[0].rows};
  for (int d = 0; d < count; d++)
    shape[d + 1] = levels[d].longest;
  for (int d = 1; d < x.rank; d++)
    shape[count + d] = x.dims[d];
  op_set_output(c, 2, op_dims_value(c, DTYPE_INT64, 1, shape, rank));
  return OK;
}

/* ---- RaggedTensorToTensor ---- */

struct dense {
  value_id shape, values, filler;
  int count; /* of partitions */
  struct level levels[LEVELS_MAX];
  int rank; /* of the result */
  dim dims[LIMIT_RANK];
};

static const char *partition_type(const struct op_call *c, uint32_t i) {
  const struct attr_value *types = node_attr(c->node, "row_partition_types");
  return types && i < types->list.count && types->list.items[i].s.data ? types->list.items[i].s.data : "";
}

static status read_partitions(struct op_call *c, struct dense *d) {
  uint32_t first = op_arg_index(c, "row_partition_tensors"), given = c->in_count - first;
  struct partition p[LEVELS_MAX];
  dim rows = NO_DIM;
  if (given < 1)
    return fail(INVALID_ARGUMENT, "row_partition_types must not be empty");
  bool is_sized = strcmp(partition_type(c, 0), "FIRST_DIM_SIZE") == 0;
  if (given <= is_sized || given - is_sized > LEVELS_MAX || (!is_sized && strcmp(partition_type(c, 0), "ROW_SPLITS") != 0))
    return fail(UNIMPLEMENTED, "%u row partitions that begin with '%s'", given, partition_type(c, 0));
  if (is_sized) {
    value_id v;
    TRY(op_input(c, first, &v));
    TRY(op_bound_dims(c, v, 1, &rows));
  }
  d->count = (int)given - is_sized;
  for (uint32_t i = is_sized; i < given; i++) {
    bool is_splits = strcmp(partition_type(c, i), "ROW_SPLITS") == 0;
    if (!is_splits && strcmp(partition_type(c, i), "VALUE_ROWIDS") != 0)
      return fail(UNIMPLEMENTED, "row partition '%s' after '%s'", partition_type(c, i), partition_type(c, i - 1));
    TRY(take_partition(c, first + i, is_splits, &p[i - is_sized]));
  }
  TRY(nested_levels(c, p, d->count, rows, op_value(c, d->values)->dims[0], d->levels));
  return is_sized && p[0].is_splits ? op_equal_dims(c, d->levels[0].rows, rows, "the first dimension and the rows of the splits") : OK;
}

/* What the shape input leaves open (-1, or a scalar) comes from the values. */
static status dense_dims(struct op_call *c, struct dense *d) {
  struct flow_value x = *op_value(c, d->values), s = *op_value(c, d->shape);
  d->rank = d->count + x.rank;
  if (d->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", d->rank);
  if (s.rank > 0)
    TRY(op_vector_of(c, &d->shape, d->rank, "shape"));
  for (int i = 0; i < d->rank; i++) {
    dim own = i == 0 ? d->levels[0].rows : i <= d->count ? d->levels[i - 1].longest : x.dims[i - d->count];
    struct kb kb;
    kb_begin(&kb, c, DTYPE_INT64);
    uint32_t o = kb_out(&kb, DTYPE_INT64, 0, NULL);
    expr_id wanted = s.rank ? kb_element(&kb, d->shape, i) : kb_int(&kb, -1);
    kb_store(&kb, o, NULL, real_element(kb_select(&kb, kb_lt(&kb, wanted, kb_int(&kb, 0)), kb_dim(&kb, own), wanted)));
    value_id v = kb_value(&kb, o);
    TRY(kb_finish_guarded(&kb));
    TRY(op_bound_dims(c, v, 1, &d->dims[i]));
    if (i > d->count)
      TRY(op_equal_dims(c, d->dims[i], own, "shape and the inner dimensions of values"));
  }
  return OK;
}

status build_ragged_to_tensor(struct op_call *c) {
  struct dense d = {0};
  TRY(op_input(c, 0, &d.shape));
  TRY(op_input(c, 1, &d.values));
  TRY(op_input(c, 2, &d.filler));
  struct flow_value x = *op_value(c, d.values), f = *op_value(c, d.filler);
  if (x.rank < 1 || f.rank > x.rank - 1)
    return fail(INVALID_ARGUMENT, "default_value of shape %s does not fit values of shape %s", op_shape_text(c, f.rank, f.dims),
                op_shape_text(c, x.rank, x.dims));
  TRY(read_partitions(c, &d));
  TRY(dense_dims(c, &d));
  for (int i = 0; i < f.rank; i++)
    if (op_dim_value(c, f.dims[i]) != 1)
      TRY(op_equal_dims(c, f.dims[i], x.dims[x.rank - f.rank + i], "default_value and the inner dimensions of values"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, d.values), filler = kb_in(&kb, d.filler), out = kb_out(&kb, x.dtype, d.rank, d.dims);
  expr_id at[2 * LIMIT_RANK], index[2 * LIMIT_RANK], inside = expr_int(kb.k, DTYPE_BOOL, 1);
  kb_loops(&kb, LOOP_PAR, d.rank, d.dims, at);
  kb_store(&kb, out, at, kb_load_broadcast(&kb, filler, x.rank - 1, at + d.count + 1));
  kb_close(&kb, d.rank);
  expr_id v = kb_for_dim(&kb, LOOP_SEQ, x.dims[0]);
  ragged_index(&kb, d.levels, d.count, v, index);
  for (int i = 0; i <= d.count; i++)
    inside = kb_and(&kb, inside, kb_in_range(&kb, index[i], kb_dim(&kb, d.dims[i])));
  kb_if(&kb, inside);
  at[0] = v;
  kb_loops(&kb, LOOP_PAR, x.rank - 1, x.dims + 1, at + 1);
  memcpy(index + d.count + 1, at + 1, sizeof *at * (size_t)(x.rank - 1));
  kb_store(&kb, out, index, kb_load(&kb, in, at));
  kb_close(&kb, x.rank + 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- RaggedGather ---- */

/* Rows picked[0 .. n) of splits: their own splits, and the numbers of their children. The row that a scalar names has no splits of its
 * own: output -1. */
static status gather_level(struct op_call *c, value_id splits, int output, value_id *picked, dim *n) {
  struct flow_value s = *op_value(c, splits);
  dim rows = dim_sub(op_dims(c), s.dims[0], op_dim(c, 1)), after = op_add(c, *n, op_dim(c, 1)), total;
  struct kb kb;
  kb_begin(&kb, c, s.dtype);
  uint32_t in = kb_in(&kb, splits), picks = kb_in(&kb, *picked), out = kb_out(&kb, s.dtype, 1, &after),
           sum = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1);
  uint32_t end = kb_local(&kb, zero);
  kb_store(&kb, out, &zero, f_const_as(&kb.f, s.dtype, 0));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, *n), next = kb_add(&kb, i, one),
          row = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, picks, &i))));
  expr_id size = kb_dim(&kb, rows);
  kb_check_index(&kb, kb_in_range(&kb, row, size), "indices[%d] = %d is not in [0, %d)", i, row, size);
  expr_id row_after = kb_add(&kb, row, one),
          length = kb_sub(&kb, kb_index(&kb, kb_load(&kb, in, &row_after)), kb_index(&kb, kb_load(&kb, in, &row)));
  kb_check(&kb, kb_le(&kb, zero, length), INVALID_ARGUMENT, "Ragged splits must be sorted in ascending order: row %d has %d values", row,
           length);
  kb_set(&kb, end, kb_add(&kb, kb_get(&kb, end), length));
  kb_store(&kb, out, &next, real_element(expr_cast(kb.k, s.dtype, kb_get(&kb, end))));
  kb_close(&kb, 1);
  kb_store(&kb, sum, NULL, real_element(kb_get(&kb, end)));
  if (output >= 0)
    op_set_output(c, (uint32_t)output, kb_value(&kb, out));
  value_id v = kb_value(&kb, sum);
  TRY(kb_finish_guarded(&kb));
  TRY(op_bound_dims(c, v, 1, &total));
  kb_begin(&kb, c, DTYPE_INT64);
  in = kb_in(&kb, splits), picks = kb_in(&kb, *picked), out = kb_out(&kb, DTYPE_INT64, 1, &total);
  zero = kb_int(&kb, 0), one = kb_int(&kb, 1);
  end = kb_local(&kb, zero);
  i = kb_for_dim(&kb, LOOP_SEQ, *n), row = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, picks, &i)))),
  row_after = kb_add(&kb, row, one);
  expr_id begin = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, in, &row))));
  expr_id count = kb_get(&kb, kb_local(&kb, kb_sub(&kb, kb_index(&kb, kb_load(&kb, in, &row_after)), begin)));
  expr_id j = kb_for(&kb, LOOP_SEQ, count), to = kb_add(&kb, kb_get(&kb, end), j);
  kb_store(&kb, out, &to, real_element(kb_add(&kb, begin, j)));
  kb_close(&kb, 1);
  kb_set(&kb, end, kb_add(&kb, kb_get(&kb, end), count));
  kb_close(&kb, 1);
  *picked = kb_value(&kb, out);
  *n = total;
  return kb_finish_guarded(&kb);
}

/* Dimensions of indices beyond the first become evenly split ragged ones. */
static status even_splits(struct op_call *c, const struct flow_value *indices, enum dtype dtype, int d) {
  dim rows = op_count(c, d, indices->dims), length = op_add(c, rows, op_dim(c, 1));
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t out = kb_out(&kb, dtype, 1, &length);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, length);
  kb_store(&kb, out, &i, real_element(expr_cast(kb.k, dtype, kb_mul(&kb, i, kb_dim(&kb, indices->dims[d])))));
  kb_close(&kb, 1);
  op_set_output(c, (uint32_t)d - 1, kb_value(&kb, out));
  return kb_finish(&kb);
}

status build_ragged_gather(struct op_call *c) {
  int count = (int)node_attr_int(c->node, "PARAMS_RAGGED_RANK", 1);
  value_id v, indices, splits, picked, out;
  TRY(op_input(c, (uint32_t)count, &v));
  TRY(op_input(c, (uint32_t)count + 1, &indices));
  struct flow_value x = *op_value(c, v), i = *op_value(c, indices);
  if (x.rank < 1)
    return fail(INVALID_ARGUMENT, "params.dense_values must have at least one dimension");
  dim n = op_count(c, i.rank, i.dims);
  picked = op_alias(c, indices, i.dtype, 1, &n);
  int output = i.rank - 1;
  for (int level = 0; level < count; level++) {
    TRY(op_input(c, (uint32_t)level, &splits));
    if (op_value(c, splits)->rank != 1)
      return fail(INVALID_ARGUMENT, "Ragged splits must be vectors");
    for (int d = 1; level == 0 && d < i.rank; d++)
      TRY(even_splits(c, &i, op_value(c, splits)->dtype, d));
    TRY(op_require_le(c, op_dim(c, 1), op_value(c, splits)->dims[0], "Ragged splits need at least %d element, not %d"));
    TRY(gather_level(c, splits, output + level, &picked, &n));
  }
  struct kb guard;
  guard_begin(&guard, c);
  uint32_t rows = kb_in(&guard, picked);
  expr_id at = kb_for_dim(&guard, LOOP_SEQ, n), row = kb_load(&guard, rows, &at).re;
  kb_check(&guard, kb_in_range(&guard, row, kb_dim(&guard, x.dims[0])), INVALID_ARGUMENT,
           "Ragged splits must not point past values: %d of %d", row, kb_dim(&guard, x.dims[0]));
  kb_close(&guard, 1);
  TRY(guard_finish(&guard));
  TRY(op_pick_rows(c, v, picked, op_dim(c, 0), n, &out));
  op_set_output(c, (uint32_t)(output + count), out);
  return OK;
}
