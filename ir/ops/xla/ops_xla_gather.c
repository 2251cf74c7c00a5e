/* ops_xla_gather.c: XLA's Gather and Scatter: windows of a tensor at places that an index tensor says. Some axes of the
 * index tensor's result number the windows, the others are within them. */
#include "ir/ops/xla/xla.h"

struct windows {
  struct flow_value x, indices;
  struct axis_list inner;   /* axes of the gathered (or the updates) within a window: each is one of x, in order, but for: */
  struct axis_list dropped; /* axes of x along which a window has one place */
  struct axis_list batching, index_batching; /* axes of x that go along with axes of the indices */
  struct axis_list starts;                   /* element i of an index is along this axis of x */
  struct axis_list outer;                    /* axes of the gathered that number windows: each is one of the indices, in order */
  int vector;                                /* the axis of the indices that holds an index; their rank: they are scalars */
  int rank;                                  /* of the gathered */
};

/* Fields 1 .. 6 of either message mean the same. */
static status windows_read(struct op_call *c, struct windows *w) {
  TRY(xla_axis(c, 4, w->indices.rank, &w->vector));
  TRY(xla_axes(c, 2, w->x.rank, &w->dropped));
  TRY(xla_axes(c, 3, w->x.rank, &w->starts));
  TRY(xla_axes(c, 5, w->x.rank, &w->batching));
  TRY(xla_axes(c, 6, w->indices.rank, &w->index_batching));
  int outer = w->indices.rank - (w->vector < w->indices.rank), inner = w->x.rank - w->dropped.count - w->batching.count;
  w->rank = outer + inner;
  if (w->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a tensor of rank %d", w->rank);
  TRY(xla_axes(c, 1, w->rank, &w->inner));
  xla_other_axes(w->rank, &w->inner, NULL, &w->outer);
  if (w->inner.count != inner || w->batching.count != w->index_batching.count)
    return fail(INVALID_ARGUMENT, "dimension_numbers have %d axes of windows, not %d", w->inner.count, inner);
  if (w->vector < w->indices.rank)
    return op_equal_dims(c, w->indices.dims[w->vector], op_dim(c, w->starts.count), "the length of an index");
  return w->starts.count == 1 ? OK : fail(INVALID_ARGUMENT, "a scalar index for %d axes", w->starts.count);
}

/* The axis of the indices behind outer axis number i. */
static int index_axis(const struct windows *w, int i) { return i < w->vector ? i : i + 1; }
/* The axis of x behind inner axis number i. */
static int inner_axis(const struct windows *w, int i) {
  struct axis_list rest;
  xla_other_axes(w->x.rank, &w->dropped, &w->batching, &rest);
  return (int)rest.items[i];
}

/* Where the window numbered by the outer places of `at` begins, as the indices say it. */
static void window_starts(struct kb *kb, const struct windows *w, uint32_t indices, const expr_id *at, expr_id *start) {
  expr_id index[LIMIT_RANK + 1];
  for (int d = 0; d < w->x.rank; d++)
    start[d] = kb_int(kb, 0);
  for (int i = 0; i < w->outer.count; i++) {
    index[index_axis(w, i)] = at[w->outer.items[i]];
    for (int k = 0; k < w->batching.count; k++)
      if (w->index_batching.items[k] == index_axis(w, i))
        start[w->batching.items[k]] = at[w->outer.items[i]];
  }
  for (int i = 0; i < w->starts.count; i++) {
    if (w->vector < w->indices.rank)
      index[w->vector] = kb_int(kb, i);
    start[w->starts.items[i]] = kb_index(kb, kb_load(kb, indices, index));
  }
}

/* operand, start_indices, slice_sizes */
status build_xla_gather(struct op_call *c) {
  value_id v, places;
  struct windows w;
  int64_t sizes[LIMIT_RANK];
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &places));
  w.x = *op_value(c, v);
  w.indices = *op_value(c, places);
  TRY(windows_read(c, &w));
  TRY(xla_numbers(c, 2, "slice_sizes", w.x.rank, sizes));
  dim dims[LIMIT_RANK];
  for (int d = 0; d < w.x.rank; d++)
    if (sizes[d] < 0)
      return fail(INVALID_ARGUMENT, "slice size %lld of dimension %d is negative", (long long)sizes[d], d);
  for (int i = 0; i < w.outer.count; i++)
    dims[w.outer.items[i]] = w.indices.dims[index_axis(&w, i)];
  for (int i = 0; i < w.inner.count; i++)
    dims[w.inner.items[i]] = op_dim(c, sizes[inner_axis(&w, i)]);
  for (int d = 0; d < w.x.rank; d++)
    TRY(op_require_le(c, op_dim(c, sizes[d]), w.x.dims[d], "slice size %d is larger than the dimension's %d"));
  struct kb kb;
  kb_begin(&kb, c, w.x.dtype);
  uint32_t in = kb_in(&kb, v), indices = kb_in(&kb, places), out = kb_out(&kb, w.x.dtype, w.rank, dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, w.rank, dims, at);
  window_starts(&kb, &w, indices, at, from);
  for (int d = 0; d < w.x.rank; d++) { /* a window that would reach over the end is moved inside */
    expr_id last = kb_sub(&kb, kb_dim(&kb, w.x.dims[d]), kb_int(&kb, sizes[d]));
    if (!axis_in(&w.batching, d))
      from[d] = expr_binary(kb.k, SCALAR_MIN, expr_binary(kb.k, SCALAR_MAX, from[d], kb_int(&kb, 0)), last);
  }
  for (int i = 0; i < w.inner.count; i++)
    from[inner_axis(&w, i)] = kb_add(&kb, from[inner_axis(&w, i)], at[w.inner.items[i]]);
  kb_store(&kb, out, at, kb_load(&kb, in, from));
  kb_close(&kb, w.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* The updates one after the other: each window's elements change those of the copy. A window that does not lie within
 * it changes none. */
static void store_windows(struct kb *kb, const struct windows *w, const struct xla_function *f, uint32_t indices, uint32_t updates,
                          uint32_t out, const dim *dims) {
  expr_id at[LIMIT_RANK], to[LIMIT_RANK], inside = expr_int(kb->k, DTYPE_BOOL, 1);
  dim length[LIMIT_RANK];
  for (int i = 0; i < w->outer.count; i++)
    at[w->outer.items[i]] = kb_for_dim(kb, LOOP_SEQ, dims[w->outer.items[i]]);
  window_starts(kb, w, indices, at, to);
  for (int d = 0; d < w->x.rank; d++) {
    to[d] = kb_get(kb, kb_local(kb, to[d]));
    length[d] = op_dim(kb->c, 1);
  }
  for (int i = 0; i < w->inner.count; i++)
    length[inner_axis(w, i)] = dims[w->inner.items[i]];
  for (int d = 0; d < w->x.rank; d++) {
    expr_id end = kb_add(kb, to[d], kb_dim(kb, length[d]));
    inside = kb_and(kb, inside, kb_and(kb, kb_le(kb, kb_int(kb, 0), to[d]), kb_le(kb, end, kb_dim(kb, w->x.dims[d]))));
  }
  kb_if(kb, inside);
  for (int i = 0; i < w->inner.count; i++) {
    int axis = inner_axis(w, i);
    at[w->inner.items[i]] = kb_for_dim(kb, LOOP_PAR, dims[w->inner.items[i]]);
    to[axis] = kb_add(kb, to[axis], at[w->inner.items[i]]);
  }
  struct element args[2] = {kb_load(kb, out, to), kb_load(kb, updates, at)}, e;
  xla_function_apply(kb, f, args, &e);
  kb_store(kb, out, to, e);
  kb_close(kb, w->inner.count + 1 + w->outer.count);
}

/* operand, scatter_indices, updates */
status build_xla_scatter(struct op_call *c) {
  value_id v, places, update;
  struct windows w;
  struct xla_function f;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &places));
  TRY(op_input(c, 2, &update));
  w.x = *op_value(c, v);
  w.indices = *op_value(c, places);
  struct flow_value u = *op_value(c, update);
  TRY(windows_read(c, &w));
  TRY(xla_function_read(c, "update_computation", 2, (const enum dtype[]){w.x.dtype, w.x.dtype}, 1, &w.x.dtype, &f));
  if (u.rank != w.rank)
    return fail(INVALID_ARGUMENT, "updates must have %d dimensions: %s", w.rank, op_shape_text(c, u.rank, u.dims));
  for (int i = 0; i < w.outer.count; i++)
    TRY(op_equal_dims(c, u.dims[w.outer.items[i]], w.indices.dims[index_axis(&w, i)], "updates and scatter_indices"));
  for (int i = 0; i < w.inner.count; i++)
    TRY(op_require_le(c, u.dims[w.inner.items[i]], w.x.dims[inner_axis(&w, i)], "an update of %d is larger than the dimension's %d"));
  struct kb kb;
  kb_begin(&kb, c, w.x.dtype);
  uint32_t old = kb_in(&kb, v), indices = kb_in(&kb, places), updates = kb_in(&kb, update),
           out = kb_out(&kb, w.x.dtype, w.x.rank, w.x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, w.x.rank, w.x.dims, at);
  kb_store(&kb, out, at, kb_load(&kb, old, at));
  kb_close(&kb, w.x.rank);
  store_windows(&kb, &w, &f, indices, updates, out, u.dims);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
