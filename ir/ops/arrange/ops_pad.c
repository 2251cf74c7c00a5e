/* ops_pad.c: larger tensors around or out of smaller ones: Pad, MirrorPad and its gradient, Tile, OneHot. */
#include <string.h>

#include "ir/ops/arrange.h"

/* ---- paddings [rank, 2] ---- */

static status read_paddings(struct op_call *c, value_id paddings, int rank) {
  struct flow_value p = *op_value(c, paddings);
  if (p.rank != 2)
    return fail(INVALID_ARGUMENT, "paddings must be a matrix with 2 columns: %s", op_shape_text(c, p.rank, p.dims));
  if (op_equal_dims(c, p.dims[1], op_dim(c, 2), "columns of paddings") != OK)
    return fail(INVALID_ARGUMENT, "paddings must be a matrix with 2 columns: %s", op_shape_text(c, p.rank, p.dims));
  if (op_equal_dims(c, p.dims[0], op_dim(c, rank), "rows of paddings") != OK)
    return fail(INVALID_ARGUMENT, "The first dimension of paddings must be the rank of inputs%s of rank %d",
                op_shape_text(c, p.rank, p.dims), rank);
  return OK;
}

/* n + before + after (or less both, for gradients) */
static status padded_dim(struct op_call *c, value_id paddings, int d, dim n, bool grows, dim *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id both = kb_add(&kb, kb_element(&kb, paddings, 2 * d), kb_element(&kb, paddings, 2 * d + 1)), size = kb_dim(&kb, n);
  kb_store(&kb, o, NULL, real_element(grows ? kb_add(&kb, size, both) : kb_sub(&kb, size, both)));
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, out);
}

static status check_paddings(struct op_call *c, value_id paddings, int rank) {
  struct kb guard;
  guard_begin(&guard, c);
  for (int d = 0; d < rank; d++) {
    expr_id before = kb_element(&guard, paddings, 2 * d), after = kb_element(&guard, paddings, 2 * d + 1);
    expr_id zero = kb_int(&guard, 0);
    kb_check(&guard, kb_and(&guard, kb_le(&guard, zero, before), kb_le(&guard, zero, after)), INVALID_ARGUMENT,
             "Paddings must be non-negative: %d %d", before, after);
  }
  return guard_finish(&guard);
}

static bool is_never_empty(struct op_call *c, const struct flow_value *x) {
  for (int d = 0; d < x->rank; d++)
    if (op_dim_value(c, x->dims[d]) < 1)
      return false;
  return true;
}

/* One nest: each place takes its element, or the value. What is read outside is clamped, so x must not be empty. */
static void pad_in_one(struct kb *kb, value_id paddings, const struct flow_value *x, uint32_t in, uint32_t out, const dim *dims,
                       struct element value) {
  expr_id at[LIMIT_RANK], from[LIMIT_RANK], inside = expr_int(kb->k, DTYPE_BOOL, 1);
  kb_loops(kb, LOOP_PAR, x->rank, dims, at);
  for (int d = 0; d < x->rank; d++) {
    int64_t before, after;
    from[d] = kb_sub(kb, at[d], kb_element(kb, paddings, 2 * d));
    bool moves = !op_known_int(kb->c, paddings, 2 * d, &before) || !op_known_int(kb->c, paddings, 2 * d + 1, &after) || before || after;
    if (moves) {
      inside = kb_and(kb, inside, kb_in_range(kb, from[d], kb_dim(kb, x->dims[d])));
      from[d] = kb_clamp(kb, from[d], kb_dim(kb, x->dims[d]));
    }
  }
  kb_store(kb, out, at, f_select(&kb->f, real_element(inside), kb_load(kb, in, from), value));
  kb_close(kb, x->rank);
}

static void pad_in_two(struct kb *kb, value_id paddings, const struct flow_value *x, uint32_t in, uint32_t out, const dim *dims,
                       struct element value) {
  expr_id at[LIMIT_RANK], to[LIMIT_RANK];
  kb_fill(kb, out, x->rank, dims, value);
  kb_loops(kb, LOOP_PAR, x->rank, x->dims, at);
  for (int d = 0; d < x->rank; d++)
    to[d] = kb_add(kb, at[d], kb_element(kb, paddings, 2 * d));
  kb_store(kb, out, to, kb_load(kb, in, at));
  kb_close(kb, x->rank);
}

status build_pad(struct op_call *c) {
  value_id v, paddings, filler = NO_VALUE;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &paddings));
  if (c->in_count > 2)
    TRY(op_input(c, 2, &filler));
  if (filler && op_value(c, filler)->rank)
    return fail(INVALID_ARGUMENT, "constant_values must be a scalar, but is %s",
                op_shape_text(c, op_value(c, filler)->rank, op_value(c, filler)->dims));
  struct flow_value x = *op_value(c, v);
  TRY(read_paddings(c, paddings, x.rank));
  TRY(check_paddings(c, paddings, x.rank));
  dim dims[LIMIT_RANK];
  bool same = true;
  for (int d = 0; d < x.rank; d++) {
    TRY(padded_dim(c, paddings, d, x.dims[d], true, &dims[d]));
    same = same && dim_equal(op_dims(c), dims[d], x.dims[d]) == 1;
  }
  if (same) {
    op_set_output(c, 0, v);
    return OK;
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, dims);
  struct element value = filler ? kb_load(&kb, kb_in(&kb, filler), NULL) : kb_zero(&kb, x.dtype);
  (is_never_empty(c, &x) ? pad_in_one : pad_in_two)(&kb, paddings, &x, in, out, dims, value);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- MirrorPad ---- */

/* 1 when the border element itself is not repeated. */
static int mirror_offset(struct op_call *c) { return strcmp(node_attr_string(c->node, "mode", "REFLECT"), "REFLECT") == 0; }

static status check_mirror(struct op_call *c, value_id paddings, int rank, const dim *dims, int offset) {
  struct kb guard;
  guard_begin(&guard, c);
  for (int d = 0; d < rank; d++)
    for (int side = 0; side < 2; side++) {
      expr_id n = kb_dim(&guard, dims[d]), pad = kb_element(&guard, paddings, 2 * d + side), zero = kb_int(&guard, 0);
      expr_id fits = kb_le(&guard, kb_add(&guard, pad, kb_int(&guard, offset)), n);
      kb_check(&guard, kb_le(&guard, zero, pad), INVALID_ARGUMENT, "paddings must be non-negative: %d", pad, NO_EXPR);
      kb_check(&guard, fits, INVALID_ARGUMENT,
               offset ? "paddings must be less than the dimension size: %d not less than %d"
                      : "paddings must be no greater than the dimension size: %d greater than %d",
               pad, n);
    }
  return guard_finish(&guard);
}

static expr_id mirror_place(struct kb *kb, value_id paddings, int d, dim size, int offset, expr_id at) {
  expr_id n = kb_dim(kb, size), zero = kb_int(kb, 0), place = kb_sub(kb, at, kb_element(kb, paddings, 2 * d));
  expr_id left = kb_sub(kb, kb_int(kb, offset - 1), place);
  expr_id right = kb_sub(kb, kb_sub(kb, kb_add(kb, n, n), kb_int(kb, 1 + offset)), place);
  int64_t before, after;
  if (op_known_int(kb->c, paddings, 2 * d, &before) && op_known_int(kb->c, paddings, 2 * d + 1, &after) && !before && !after)
    return at;
  return kb_select(kb, kb_lt(kb, place, zero), left, kb_select(kb, kb_lt(kb, place, n), place, right));
}

status build_mirror_pad(struct op_call *c) {
  value_id v, paddings;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &paddings));
  struct flow_value x = *op_value(c, v);
  int offset = mirror_offset(c);
  TRY(read_paddings(c, paddings, x.rank));
  TRY(check_mirror(c, paddings, x.rank, x.dims, offset));
  dim dims[LIMIT_RANK];
  for (int d = 0; d < x.rank; d++)
    TRY(padded_dim(c, paddings, d, x.dims[d], true, &dims[d]));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  for (int d = 0; d < x.rank; d++)
    from[d] = mirror_place(&kb, paddings, d, x.dims[d], offset, at[d]);
  kb_store(&kb, out, at, kb_load(&kb, in, from));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* acc + the gradient of the place's mirror image, where it has one. `image` is its place in the padded dimension. */
static struct element add_image(struct kb *kb, uint32_t in, const expr_id *from, int d, expr_id has, expr_id image, dim size,
                                struct element acc) {
  expr_id index[LIMIT_RANK];
  memcpy(index, from, sizeof index);
  index[d] = kb_clamp(kb, image, kb_dim(kb, size));
  struct element sum = f_binary(&kb->f, SCALAR_ADD, acc, kb_load(kb, in, index));
  return f_select(&kb->f, real_element(has), sum, acc);
}

/* One dimension of the gradient: what was mirrored out on both sides is added back. */
static status fold_mirror(struct op_call *c, value_id v, value_id paddings, int d, int offset, dim inner, value_id *out) {
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[d] = inner;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  memcpy(from, at, sizeof at);
  expr_id before = kb_element(&kb, paddings, 2 * d), after = kb_element(&kb, paddings, 2 * d + 1), i = at[d];
  expr_id n = kb_dim(&kb, inner), skip = kb_int(&kb, offset), one = kb_int(&kb, 1);
  from[d] = kb_add(&kb, i, before);
  expr_id low = kb_sub(&kb, i, skip), high = kb_sub(&kb, kb_sub(&kb, kb_sub(&kb, n, one), skip), i);
  struct element e = kb_load(&kb, in, from);
  e = add_image(&kb, in, from, d, kb_in_range(&kb, low, before), kb_sub(&kb, kb_sub(&kb, before, one), low), x.dims[d], e);
  e = add_image(&kb, in, from, d, kb_in_range(&kb, high, after), kb_add(&kb, kb_add(&kb, before, n), high), x.dims[d], e);
  kb_store(&kb, o, at, e);
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

status build_mirror_pad_grad(struct op_call *c) {
  value_id v, paddings;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &paddings));
  struct flow_value x = *op_value(c, v);
  int offset = mirror_offset(c);
  TRY(read_paddings(c, paddings, x.rank));
  dim dims[LIMIT_RANK];
  for (int d = 0; d < x.rank; d++)
    TRY(padded_dim(c, paddings, d, x.dims[d], false, &dims[d]));
  TRY(check_mirror(c, paddings, x.rank, dims, offset));
  for (int d = 0; d < x.rank; d++)
    TRY(op_require_le(c, op_dim(c, 1), dims[d],
                      "Total paddings must be less than the input dimension size: at least %d must be left, not %d"));
  for (int d = 0; d < x.rank; d++)
    if (dim_equal(op_dims(c), dims[d], x.dims[d]) != 1)
      TRY(fold_mirror(c, v, paddings, d, offset, dims[d], &v));
  op_set_output(c, 0, v);
  return OK;
}

/* ---- Tile ---- */

static status tiled_dim(struct op_call *c, value_id multiples, int d, dim n, dim *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 0, NULL);
  kb_store(&kb, o, NULL, real_element(kb_mul(&kb, kb_dim(&kb, n), kb_element(&kb, multiples, d))));
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, out);
}

/* Opens loops over the result; from: where its element stands in the input. Rows that are repeated along the last axis are read side by
 * side, however often. */
static void tile_loops(struct kb *kb, const struct flow_value *x, const dim *dims, expr_id *at, expr_id *from) {
  int last = x->rank - 1;
  int64_t length = x->rank ? op_dim_value(kb->c, x->dims[last]) : 0, all = x->rank ? op_dim_value(kb->c, dims[last]) : 0;
  bool is_split = length > 1 && all > length;
  kb_loops(kb, LOOP_PAR, is_split ? last : x->rank, dims, at);
  if (is_split) {
    expr_id turn = kb_for(kb, LOOP_PAR, kb_int(kb, all / length));
    from[last] = kb_for(kb, LOOP_PAR, kb_int(kb, length));
    at[last] = kb_add(kb, kb_mul(kb, turn, kb_int(kb, length)), from[last]);
  }
  for (int d = 0; d < x->rank - is_split; d++)
    from[d] = dim_equal(op_dims(kb->c), dims[d], x->dims[d]) == 1 ? at[d] : kb_mod(kb, at[d], kb_dim(kb, x->dims[d]));
}
status build_tile(struct op_call *c) {
  value_id v, multiples;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &multiples));
  struct flow_value x = *op_value(c, v);
  TRY(op_vector_of(c, &multiples, x.rank, "multiples"));
  struct kb guard, kb;
  guard_begin(&guard, c);
  for (int d = 0; d < x.rank; d++) {
    expr_id m = kb_element(&guard, multiples, d);
    kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), m), INVALID_ARGUMENT, "Expected multiples[%d] >= 0, but got %d", kb_int(&guard, d),
             m);
  }
  TRY(guard_finish(&guard));
  dim dims[LIMIT_RANK];
  bool same = true;
  for (int d = 0; d < x.rank; d++) {
    TRY(tiled_dim(c, multiples, d, x.dims[d], &dims[d]));
    same = same && dim_equal(op_dims(c), dims[d], x.dims[d]) == 1;
  }
  if (same) {
    op_set_output(c, 0, v);
    return OK;
  }
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK];
  tile_loops(&kb, &x, dims, at, from);
  kb_store(&kb, out, at, kb_load(&kb, in, from));
  kb_close(&kb, kb.depth);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- OneHot ---- */

status build_one_hot(struct op_call *c) {
  value_id v, depth, on, off;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &depth));
  TRY(op_input(c, 2, &on));
  TRY(op_input(c, 3, &off));
  struct flow_value x = *op_value(c, v);
  enum dtype dtype = op_value(c, on)->dtype;
  int64_t wanted = node_attr_int(c->node, "axis", -1);
  if (wanted < -1 || wanted > x.rank)
    return fail(INVALID_ARGUMENT, "Expected axis to be -1 or between [0, %d).  But received: %lld", x.rank + 1, (long long)wanted);
  if (op_value(c, depth)->rank || op_value(c, on)->rank || op_value(c, off)->rank)
    return fail(INVALID_ARGUMENT, "depth, on_value and off_value must be scalars");
  if (x.rank >= LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", x.rank + 1);
  int axis = wanted < 0 ? x.rank : (int)wanted;
  struct kb guard, kb;
  guard_begin(&guard, c);
  expr_id n = kb_element(&guard, depth, 0);
  kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), n), INVALID_ARGUMENT, "depth must be non-negative, got: %d", n, NO_EXPR);
  TRY(guard_finish(&guard));
  dim dims[LIMIT_RANK], classes;
  TRY(op_bound_dims(c, depth, 1, &classes));
  for (int d = 0; d <= x.rank; d++)
    dims[d] = d < axis ? x.dims[d] : d == axis ? classes : x.dims[d - 1];
  kb_begin(&kb, c, dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, dtype, x.rank + 1, dims);
  struct element yes = kb_load(&kb, kb_in(&kb, on), NULL), no = kb_load(&kb, kb_in(&kb, off), NULL);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank + 1, dims, at);
  for (int d = 0; d < x.rank; d++)
    from[d] = at[d < axis ? d : d + 1];
  expr_id hot = kb_eq(&kb, kb_index(&kb, kb_load(&kb, in, from)), at[axis]);
  kb_store(&kb, out, at, f_select(&kb.f, real_element(hot), yes, no));
  kb_close(&kb, x.rank + 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
