/* ops_concat.c: tensors put together and taken apart: Concat, Pack, Split, Unpack, ConcatOffset.
 *
 * Each input is stored by a nest of its own at its offset, so that an empty one is never read. */
#include <string.h>

#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"

static status read_values(struct op_call *c, const char *name, int *count, value_id **out) {
  uint32_t first = op_arg_index(c, name);
  *count = (int)node_attr_int(c->node, "N", 1);
  *out = ARENA_ARRAY(op_arena(c), value_id, *count + 1);
  for (int i = 0; i < *count; i++)
    TRY(op_input(c, first + (uint32_t)i, &(*out)[i]));
  return OK;
}

/* ---- Concat ---- */

static status check_concat(struct op_call *c, const value_id *values, int i, int axis) {
  struct flow_value a = *op_value(c, values[0]), b = *op_value(c, values[i]);
  const char *what = b.rank != a.rank ? "Ranks of all input tensors should match" : "Dimensions of inputs should match";
  bool fits = a.rank == b.rank;
  for (int d = 0; d < a.rank && fits; d++)
    fits = d == axis || dim_equal(op_dims(c), a.dims[d], b.dims[d]) != 0;
  if (!fits)
    return fail(INVALID_ARGUMENT, "ConcatOp : %s: shape[0] = %s vs. shape[%d] = %s", what, op_shape_text(c, a.rank, a.dims), i,
                op_shape_text(c, b.rank, b.dims));
  for (int d = 0; d < a.rank; d++)
    if (d != axis)
      TRY(op_equal_dims(c, a.dims[d], b.dims[d], "ConcatOp : Dimensions of inputs should match"));
  return OK;
}

/* out[.., offset + i, ..] = value */
static void store_at(struct kb *kb, value_id v, uint32_t out, int axis, dim offset) {
  struct flow_value x = *op_value(kb->c, v);
  if (op_dim_value(kb->c, op_count(kb->c, x.rank, x.dims)) == 0)
    return;
  uint32_t in = kb_in(kb, v);
  expr_id at[LIMIT_RANK], to[LIMIT_RANK];
  kb_loops(kb, LOOP_PAR, x.rank, x.dims, at);
  memcpy(to, at, sizeof at);
  to[axis] = kb_add(kb, kb_dim(kb, offset), at[axis]);
  kb_store(kb, out, to, kb_load(kb, in, at));
  kb_close(kb, x.rank);
}

static status concat_along(struct op_call *c, const value_id *values, int count, int axis) {
  struct flow_value first = *op_value(c, values[0]);
  dim dims[LIMIT_RANK], total = first.dims[axis];
  memcpy(dims, first.dims, sizeof dims);
  for (int i = 1; i < count; i++) {
    TRY(check_concat(c, values, i, axis));
    total = op_add(c, total, op_value(c, values[i])->dims[axis]);
  }
  if (count == 1) {
    op_set_output(c, 0, values[0]);
    return OK;
  }
  dims[axis] = total;
  struct kb kb;
  kb_begin(&kb, c, first.dtype);
  uint32_t out = kb_out(&kb, first.dtype, first.rank, dims);
  dim offset = op_dim(c, 0);
  for (int i = 0; i < count; i++) {
    store_at(&kb, values[i], out, axis, offset);
    offset = op_add(c, offset, op_value(c, values[i])->dims[axis]);
  }
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_concat(struct op_call *c) {
  value_id *values, axis_value;
  int count, axis;
  TRY(read_values(c, "values", &count, &values));
  uint32_t axis_input = op_arg_index(c, "axis");
  TRY(op_input(c, axis_input == UINT32_MAX ? op_arg_index(c, "concat_dim") : axis_input, &axis_value));
  struct flow_value first = *op_value(c, values[0]);
  int64_t wanted;
  TRY(op_const_axis(c, axis_value, "the axis of a concatenation", first.rank, &wanted));
  if (wanted < -first.rank || wanted >= first.rank)
    return fail(INVALID_ARGUMENT, "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %lld", -first.rank,
                first.rank, (long long)wanted);
  axis = (int)(wanted < 0 ? wanted + first.rank : wanted);
  return concat_along(c, values, count, axis);
}

/* Rows that are there already, one from each input. */
status build_parallel_concat(struct op_call *c) {
  value_id *values;
  int count;
  const struct attr_shape *shape = node_attr_shape(c->node, "shape");
  TRY(read_values(c, "values", &count, &values));
  bool whole = shape;
  for (int d = 0; whole && d < shape->rank; d++)
    whole = shape->dims[d] >= 0;
  if (!whole)
    return fail(INVALID_ARGUMENT, "shape attr must be fully defined.");
  for (int i = 0; i < count; i++) {
    struct flow_value x = *op_value(c, values[i]);
    if (x.rank < 1)
      return fail(INVALID_ARGUMENT, "The rank of all input shapes must be greater than 0, but input %d had rank 0.", i);
    if (x.rank != shape->rank)
      return fail(INVALID_ARGUMENT, "Shapes must be equal rank, but are %d and %d", x.rank, shape->rank);
    TRY(op_equal_dims(c, x.dims[0], op_dim(c, 1), "Size of first dimension must be 1."));
    for (int d = 1; d < x.rank; d++)
      TRY(op_equal_dims(c, x.dims[d], op_dim(c, shape->dims[d]), "From merging shapes with other shapes."));
  }
  if (shape->dims[0] != count)
    return fail(INVALID_ARGUMENT, "0th dimension of value = %lld must be that of %d inputs", (long long)shape->dims[0], count);
  return concat_along(c, values, count, 0);
}

/* Shapes agree except along the axis; output i is the offset of input i there. */
status build_concat_offset(struct op_call *c) {
  value_id axis_value, *shapes;
  int count, rank, axis;
  TRY(op_input(c, 0, &axis_value));
  TRY(read_values(c, "shape", &count, &shapes));
  TRY(op_vector_length(c, shapes[0], "input 0", &rank));
  TRY(op_known_axis(c, axis_value, "concat_dim", rank, &axis));
  for (int i = 1; i < count; i++) {
    struct kb guard;
    int other;
    TRY(op_vector_length(c, shapes[i], "input", &other));
    if (other != rank)
      return fail(INVALID_ARGUMENT, "input %d should contain %d elements, but got %d", i, rank, other);
    guard_begin(&guard, c);
    for (int d = 0; d < rank; d++) {
      expr_id a = kb_element(&guard, shapes[0], d), b = kb_element(&guard, shapes[i], d);
      if (d != axis)
        kb_check(&guard, kb_eq(&guard, a, b), INVALID_ARGUMENT,
                 arena_printf(op_arena(c), "All dimensions except %d must match. Input %d has a dimension %d of %%d and input 0 of %%d",
                              axis, i, d),
                 b, a);
    }
    TRY(guard_finish(&guard));
  }
  enum dtype dtype = op_value(c, shapes[0])->dtype;
  dim length = op_dim(c, rank);
  for (int i = 0; i < count; i++) {
    struct kb kb;
    kb_begin(&kb, c, dtype);
    uint32_t out = kb_out(&kb, dtype, 1, &length);
    expr_id offset = kb_int(&kb, 0);
    for (int j = 0; j < i; j++)
      offset = kb_add(&kb, offset, kb_element(&kb, shapes[j], axis));
    for (int d = 0; d < rank; d++) {
      expr_id at = kb_int(&kb, d);
      kb_store(&kb, out, &at, real_element(expr_cast(kb.k, dtype, d == axis ? offset : kb_int(&kb, 0))));
    }
    op_set_output(c, (uint32_t)i, kb_value(&kb, out));
    TRY(kb_finish_guarded(&kb));
  }
  return OK;
}

/* ---- Pack ---- */

static status check_pack(struct op_call *c, const value_id *values, int i) {
  struct flow_value a = *op_value(c, values[0]), b = *op_value(c, values[i]);
  bool fits = a.rank == b.rank;
  for (int d = 0; d < a.rank && fits; d++)
    fits = dim_equal(op_dims(c), a.dims[d], b.dims[d]) != 0;
  if (!fits)
    return fail(INVALID_ARGUMENT, "Shapes of all inputs must match: values[0].shape = %s != values[%d].shape = %s",
                op_shape_text(c, a.rank, a.dims), i, op_shape_text(c, b.rank, b.dims));
  for (int d = 0; d < a.rank; d++)
    TRY(op_equal_dims(c, a.dims[d], b.dims[d], "Shapes of all inputs must match"));
  return OK;
}

static void insert_place(int axis, int rank, const expr_id *at, expr_id place, expr_id *out) {
  for (int d = 0; d <= rank; d++)
    out[d] = d < axis ? at[d] : d == axis ? place : at[d - 1];
}

static status attr_axis(struct op_call *c, int rank, int *out) {
  int64_t axis = node_attr_int(c->node, "axis", 0);
  if (axis < -rank || axis >= rank)
    return fail(INVALID_ARGUMENT, "axis = %lld not in [%d, %d)", (long long)axis, -rank, rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return OK;
}

/* Variants are counted: the runtime moves them. */
static status pack_variants(struct op_call *c, int axis, int rank, const dim *dims) {
  struct flow_node *n;
  if (axis != 0)
    return fail(UNIMPLEMENTED, "variants packed along axis %d", axis);
  TRY(op_host(c, HOST_PURE, "VariantPack", &n));
  op_host_output(c, n, 0, rank, dims);
  c->out[0].maker = c->in[0].maker;
  return OK;
}

status build_pack(struct op_call *c) {
  value_id *values;
  int count, axis;
  TRY(read_values(c, "values", &count, &values));
  struct flow_value first = *op_value(c, values[0]);
  if (first.rank >= LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", first.rank + 1);
  TRY(attr_axis(c, first.rank + 1, &axis));
  for (int i = 1; i < count; i++)
    TRY(check_pack(c, values, i));
  dim dims[LIMIT_RANK];
  for (int d = 0; d <= first.rank; d++)
    dims[d] = d < axis ? first.dims[d] : d == axis ? op_dim(c, count) : first.dims[d - 1];
  if (first.dtype == DTYPE_VARIANT)
    return pack_variants(c, axis, first.rank + 1, dims);
  if (count == 1) {
    op_set_output(c, 0, op_alias(c, values[0], first.dtype, first.rank + 1, dims));
    return OK;
  }
  struct kb kb;
  kb_begin(&kb, c, first.dtype);
  uint32_t out = kb_out(&kb, first.dtype, first.rank + 1, dims);
  for (int i = 0; i < count; i++) {
    expr_id at[LIMIT_RANK], to[LIMIT_RANK];
    uint32_t in = kb_in(&kb, values[i]);
    kb_loops(&kb, LOOP_PAR, first.rank, first.dims, at);
    insert_place(axis, first.rank, at, kb_int(&kb, i), to);
    kb_store(&kb, out, to, kb_load(&kb, in, at));
    kb_close(&kb, first.rank);
  }
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

static status unpack_variants(struct op_call *c, int axis, int rank, const dim *dims) {
  struct flow_node *n;
  if (axis != 0)
    return fail(UNIMPLEMENTED, "variants unpacked along axis %d", axis);
  TRY(op_host(c, HOST_PURE, "VariantUnpack", &n));
  for (uint32_t i = 0; i < c->out_count; i++) {
    op_host_output(c, n, i, rank, dims);
    c->out[i].maker = c->in[0].maker;
  }
  return OK;
}

status build_unpack(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  int64_t count = node_attr_int(c->node, "num", 0);
  int axis;
  TRY(attr_axis(c, x.rank, &axis));
  if (dim_equal(op_dims(c), x.dims[axis], op_dim(c, count)) == 0)
    return fail(INVALID_ARGUMENT, "Input shape axis %d must equal %lld, got shape %s", axis, (long long)count,
                op_shape_text(c, x.rank, x.dims));
  TRY(op_equal_dims(c, x.dims[axis], op_dim(c, count), "the unpacked dimension and num"));
  dim dims[LIMIT_RANK];
  for (int d = 0; d + 1 < x.rank; d++)
    dims[d] = x.dims[d < axis ? d : d + 1];
  if (x.dtype == DTYPE_VARIANT)
    return unpack_variants(c, axis, x.rank - 1, dims);
  for (int64_t i = 0; i < count; i++) {
    struct kb kb;
    kb_begin(&kb, c, x.dtype);
    uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank - 1, dims);
    expr_id at[LIMIT_RANK], from[LIMIT_RANK];
    kb_loops(&kb, LOOP_PAR, x.rank - 1, dims, at);
    insert_place(axis, x.rank - 1, at, kb_int(&kb, i), from);
    kb_store(&kb, out, at, kb_load(&kb, in, from));
    kb_close(&kb, x.rank - 1);
    op_set_output(c, (uint32_t)i, kb_value(&kb, out));
    TRY(kb_finish_guarded(&kb));
  }
  return OK;
}

/* ---- Split ---- */

/* Output number `i`: length places of the axis from offset. */
static status take_piece(struct op_call *c, value_id v, int axis, uint32_t i, dim offset, dim length) {
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[axis] = length;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  memcpy(from, at, sizeof at);
  from[axis] = kb_add(&kb, kb_dim(&kb, offset), at[axis]);
  kb_store(&kb, out, at, kb_load(&kb, in, from));
  kb_close(&kb, x.rank);
  op_set_output(c, i, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

static status split_axis(struct op_call *c, const char *name, int rank, int *out) {
  value_id v;
  int64_t axis;
  TRY(op_input(c, op_arg_index(c, name), &v));
  TRY(op_const_axis(c, v, "split_dim", rank, &axis));
  if (axis < -rank || axis >= rank)
    return fail(INVALID_ARGUMENT, "-input rank(-%d) <= split_dim < input rank (%d), but got %lld", rank, rank, (long long)axis);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return OK;
}

status build_split(struct op_call *c) {
  value_id v;
  int axis;
  TRY(op_input(c, op_arg_index(c, "value"), &v));
  struct flow_value x = *op_value(c, v);
  TRY(split_axis(c, "split_dim", x.rank, &axis));
  int64_t count = node_attr_int(c->node, "num_split", 1);
  if (count == 1) {
    op_set_output(c, 0, v);
    return OK;
  }
  dim n = x.dims[axis], ways = op_dim(c, count), piece = dim_floordiv(op_dims(c), n, ways);
  struct kb guard;
  guard_begin(&guard, c);
  expr_id size = kb_dim(&guard, n);
  kb_check(
    &guard, kb_eq(&guard, kb_mod(&guard, size, kb_int(&guard, count)), kb_int(&guard, 0)), INVALID_ARGUMENT,
    arena_printf(op_arena(c),
                 "Number of ways to split should evenly divide the split dimension, but got split_dim %d (size = %%d) and num_split %lld",
                 axis, (long long)count),
    size, NO_EXPR);
  TRY(guard_finish(&guard));
  for (int64_t i = 0; i < count; i++)
    TRY(take_piece(c, v, axis, (uint32_t)i, op_mul(c, piece, op_dim(c, i)), piece));
  return OK;
}

/* The lengths with the one -1 among them made what is left. */
static status split_lengths(struct op_call *c, value_id sizes, int count, dim n, dim *out) {
  struct kb kb;
  dim length = op_dim(c, count);
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &length);
  expr_id zero = kb_int(&kb, 0), sum = zero;
  for (int i = 0; i < count; i++)
    sum = kb_add(&kb, sum, expr_binary(kb.k, SCALAR_MAX, kb_element(&kb, sizes, i), zero));
  for (int i = 0; i < count; i++) {
    expr_id own = kb_element(&kb, sizes, i), at = kb_int(&kb, i);
    expr_id rest = kb_sub(&kb, kb_dim(&kb, n), sum);
    kb_store(&kb, o, &at, real_element(kb_select(&kb, kb_lt(&kb, own, zero), rest, own)));
  }
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, count, out);
}

static status check_split_sizes(struct op_call *c, value_id sizes, int count, dim n) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id zero = kb_int(&guard, 0), one = kb_int(&guard, 1), sum = zero, open = zero, size = kb_dim(&guard, n);
  for (int i = 0; i < count; i++) {
    expr_id own = kb_element(&guard, sizes, i), is_open = kb_eq(&guard, own, kb_int(&guard, -1));
    kb_check(&guard, kb_le(&guard, kb_int(&guard, -1), own), INVALID_ARGUMENT, "Split size at index %d must be >= 0. Got: %d",
             kb_int(&guard, i), own);
    sum = kb_add(&guard, sum, kb_select(&guard, is_open, zero, own));
    open = kb_add(&guard, open, kb_select(&guard, is_open, one, zero));
  }
  kb_check(&guard, kb_le(&guard, open, one), INVALID_ARGUMENT, "There can only be one -1 in the input.", NO_EXPR, NO_EXPR);
  expr_id exact = kb_eq(&guard, sum, size), below = kb_and(&guard, kb_eq(&guard, open, one), kb_le(&guard, sum, size));
  kb_check(&guard, kb_or(&guard, exact, below), INVALID_ARGUMENT,
           "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than the "
           "size of the input along split_dim if not fully specified.  Got: %d",
           sum, NO_EXPR);
  return guard_finish(&guard);
}

status build_split_v(struct op_call *c) {
  value_id v, sizes;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &sizes));
  struct flow_value x = *op_value(c, v);
  int axis, count = (int)node_attr_int(c->node, "num_split", 1);
  TRY(split_axis(c, "split_dim", x.rank, &axis));
  TRY(op_vector_of(c, &sizes, count, "size_splits"));
  TRY(check_split_sizes(c, sizes, count, x.dims[axis]));
  dim *lengths = ARENA_ARRAY(op_arena(c), dim, count + 1), offset = op_dim(c, 0);
  TRY(split_lengths(c, sizes, count, x.dims[axis], lengths));
  for (int i = 0; i < count; i++) {
    TRY(take_piece(c, v, axis, (uint32_t)i, offset, lengths[i]));
    offset = op_add(c, offset, lengths[i]);
  }
  return OK;
}
