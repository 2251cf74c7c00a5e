/* ops_gather.c: rows and elements picked by indices: Gather, GatherV2, GatherNd and their forms on variables.
 *
 * The index of a row is loaded and checked once for the row; the loops over the row's places are inside. */
#include <string.h>

#include "ir/ops/arrange.h"

/* ---- Gather: out = params[:axis] + indices[batch:] + params[axis+1:] ---- */

struct gather {
  value_id params, indices;
  int axis, batch, index_rank, params_rank, rank;
  dim dims[LIMIT_RANK];
};

static status gather_axis(struct op_call *c, struct gather *g) {
  uint32_t at = op_arg_index(c, "axis");
  int64_t batch = node_attr_int(c->node, "batch_dims", 0);
  if (batch < -g->index_rank || batch > g->index_rank)
    return fail(INVALID_ARGUMENT, "Expected batch_dims in the range [%d, %d], but got %lld", -g->index_rank, g->index_rank,
                (long long)batch);
  g->batch = (int)(batch < 0 ? batch + g->index_rank : batch);
  g->axis = g->batch;
  if (at != UINT32_MAX) {
    value_id v;
    int64_t axis;
    TRY(op_input(c, at, &v));
    TRY(op_const_axis(c, v, "axis", g->params_rank, &axis));
    if (axis < -g->params_rank || axis >= g->params_rank)
      return fail(INVALID_ARGUMENT, "Expected axis in the range [%d, %d), but got %lld", -g->params_rank, g->params_rank, (long long)axis);
    g->axis = (int)(axis < 0 ? axis + g->params_rank : axis);
  }
  if (g->params_rank < 1 || g->axis >= g->params_rank)
    return fail(INVALID_ARGUMENT, "params must be at least %d dimensional", g->axis + 1);
  return g->batch > g->axis ? fail(INVALID_ARGUMENT, "batch_dims (%d) must be less than or equal to axis (%d)", g->batch, g->axis) : OK;
}

static status gather_dims(struct op_call *c, struct gather *g) {
  struct flow_value p = *op_value(c, g->params), i = *op_value(c, g->indices);
  g->rank = p.rank - 1 + i.rank - g->batch;
  if (g->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", g->rank);
  for (int d = 0; d < g->batch; d++)
    TRY(op_equal_dims(c, p.dims[d], i.dims[d], "batch dimensions of params and indices"));
  int n = 0;
  for (int d = 0; d < g->axis; d++)
    g->dims[n++] = p.dims[d];
  for (int d = g->batch; d < i.rank; d++)
    g->dims[n++] = i.dims[d];
  for (int d = g->axis + 1; d < p.rank; d++)
    g->dims[n++] = p.dims[d];
  return OK;
}

/* The number of an element in row-major order. */
static expr_id flat_place(struct kb *kb, int rank, const dim *dims, const expr_id *at) {
  expr_id flat = kb_int(kb, 0);
  for (int d = 0; d < rank; d++)
    flat = kb_add(kb, kb_mul(kb, flat, kb_dim(kb, dims[d])), at[d]);
  return flat;
}

/* Of slices without elements TensorFlow looks at no index, but where a variable's are gathered. */
static void check_index(struct kb *kb, const struct gather *g, const expr_id *at, expr_id index) {
  struct flow_value p = *op_value(kb->c, g->params), i = *op_value(kb->c, g->indices);
  expr_id size = kb_dim(kb, p.dims[g->axis]), place = flat_place(kb, i.rank, i.dims, at), inside = kb_in_range(kb, index, size);
  if (op_takes(kb->c, "params"))
    inside = kb_or_empty(kb, inside, p.rank - g->axis - 1, p.dims + g->axis + 1);
  if (i.rank == 0)
    kb_check(kb, inside, INVALID_ARGUMENT, "indices = %d is not in [0, %d)", index, size);
  else
    kb_check_index(kb, inside, "indices[%d] = %d is not in [0, %d)", place, index, size);
}

static status build_gather_of(struct op_call *c, struct gather *g) {
  struct flow_value p = *op_value(c, g->params);
  struct kb kb;
  kb_begin(&kb, c, p.dtype);
  uint32_t params = kb_in(&kb, g->params), indices = kb_in(&kb, g->indices), out = kb_out(&kb, p.dtype, g->rank, g->dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK], place[LIMIT_RANK];
  int picked = g->index_rank - g->batch, outer = g->axis + picked;
  kb_loops(&kb, LOOP_PAR, outer, g->dims, at);
  for (int d = 0; d < g->index_rank; d++)
    place[d] = at[d < g->batch ? d : d - g->batch + g->axis];
  expr_id index = kb_index(&kb, kb_load(&kb, indices, place));
  check_index(&kb, g, place, index);
  kb_loops(&kb, LOOP_PAR, g->rank - outer, g->dims + outer, at + outer);
  for (int d = 0; d < p.rank; d++)
    from[d] = d < g->axis ? at[d] : d == g->axis ? index : at[d - 1 + picked];
  kb_store(&kb, out, at, kb_load(&kb, params, from));
  kb_close(&kb, g->rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}

status build_gather(struct op_call *c) {
  struct gather g = {0};
  TRY(op_input(c, 0, &g.params));
  TRY(op_input(c, 1, &g.indices));
  g.params_rank = op_value(c, g.params)->rank;
  g.index_rank = op_value(c, g.indices)->rank;
  TRY(gather_axis(c, &g));
  TRY(gather_dims(c, &g));
  return build_gather_of(c, &g);
}
status build_resource_gather(struct op_call *c) { return build_gather(c); }

/* ---- GatherNd: the last dimension of indices holds the first places of an index ---- */

/* The loaded index; *inside: all its places exist. */
static void load_index(struct kb *kb, uint32_t indices, int batch, const expr_id *at, int depth, const dim *dims, expr_id *index,
                       expr_id *inside) {
  expr_id place[LIMIT_RANK + 1];
  memcpy(place, at, sizeof *at * (size_t)batch);
  *inside = expr_int(kb->k, DTYPE_BOOL, 1);
  for (int d = 0; d < depth; d++) {
    place[batch] = kb_int(kb, d);
    index[d] = kb_index(kb, kb_load(kb, indices, place));
    *inside = kb_and(kb, *inside, kb_in_range(kb, index[d], kb_dim(kb, dims[d])));
  }
}

static status index_depth(struct op_call *c, value_id indices, int rank, const char *what, int *out) {
  struct flow_value i = *op_value(c, indices);
  if (i.rank < 1)
    return fail(INVALID_ARGUMENT, "indices must be at least a vector");
  int64_t depth;
  TRY(op_const_size(c, i.dims[i.rank - 1], "the last dimension of indices", &depth));
  if (depth > rank)
    return fail(INVALID_ARGUMENT, "index innermost dimension length must be <= %s rank; saw: %lld vs. %d", what, (long long)depth, rank);
  *out = (int)depth;
  return OK;
}

status build_gather_nd(struct op_call *c) {
  value_id params, indices;
  int depth;
  enum bad_index bad;
  TRY(op_input(c, 0, &params));
  TRY(op_input(c, 1, &indices));
  struct flow_value p = *op_value(c, params), i = *op_value(c, indices);
  if (p.rank < 1)
    return fail(INVALID_ARGUMENT, "params must be at least a vector");
  TRY(index_depth(c, indices, p.rank, "params", &depth));
  TRY(op_bad_index(c, &bad));
  int batch = i.rank - 1, inner = p.rank - depth;
  if (batch + inner > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", batch + inner);
  dim dims[2 * LIMIT_RANK];
  memcpy(dims, i.dims, sizeof i.dims);
  memcpy(dims + batch, p.dims + depth, sizeof *dims * (size_t)inner);
  struct kb kb;
  kb_begin(&kb, c, p.dtype);
  uint32_t from = kb_in(&kb, params), picks = kb_in(&kb, indices), out = kb_out(&kb, p.dtype, batch + inner, dims);
  struct element zero = kb_zero(&kb, p.dtype);
  expr_id at[2 * LIMIT_RANK], index[LIMIT_RANK], inside;
  kb_loops(&kb, LOOP_PAR, batch, dims, at);
  load_index(&kb, picks, batch, at, depth, p.dims, index, &inside);
  dim row = op_count(c, inner, dims + batch);
  if (op_dim_value(c, row) <= 0) /* of rows without elements none may be asked for either */
    inside = kb_and(&kb, inside, kb_lt(&kb, kb_int(&kb, 0), kb_dim(&kb, row)));
  if (bad == BAD_INDEX_FAILS)
    kb_check(&kb, inside, INVALID_ARGUMENT,
             arena_printf(op_arena(c), "indices[%%d] does not index into param shape %s", op_shape_text(c, p.rank, p.dims)),
             flat_place(&kb, batch, dims, at), NO_EXPR);
  kb_loops(&kb, LOOP_PAR, inner, dims + batch, at + batch);
  memcpy(index + depth, at + batch, sizeof *at * (size_t)inner);
  if (bad == BAD_INDEX_IS_DROPPED)
    kb_if(&kb, inside);
  kb_store(&kb, out, at, kb_load(&kb, from, index));
  if (bad == BAD_INDEX_IS_DROPPED) {
    kb_else(&kb);
    kb_store(&kb, out, at, zero);
    kb_close(&kb, 1);
  }
  kb_close(&kb, batch + inner);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}
status build_resource_gather_nd(struct op_call *c) { return build_gather_nd(c); }
