/* ops_xla_contract.c: XLA's general products (Dot) and convolutions (Conv), whose axes may stand in any order. */
#include "ir/ops/xla/xla.h"

/* ---- Dot: [batch, free of lhs, free of rhs], summed over the contracted axes ---- */

struct dot {
  struct axis_list contracted[2], batch[2], rest[2];
};

static status dot_axes(struct op_call *c, const struct flow_value *x, struct dot *d) {
  for (uint32_t i = 0; i < 2; i++) {
    TRY(xla_axes(c, 1 + i, x[i].rank, &d->contracted[i]));
    TRY(xla_axes(c, 3 + i, x[i].rank, &d->batch[i]));
    xla_other_axes(x[i].rank, &d->contracted[i], &d->batch[i], &d->rest[i]);
  }
  if (d->contracted[0].count != d->contracted[1].count || d->batch[0].count != d->batch[1].count)
    return fail(INVALID_ARGUMENT, "Must specify the same number of contracting and batch dimensions for lhs and rhs.");
  for (int i = 0; i < d->contracted[0].count; i++)
    TRY(op_equal_dims(c, x[0].dims[d->contracted[0].items[i]], x[1].dims[d->contracted[1].items[i]],
                      "contracting dimension sizes do not match"));
  for (int i = 0; i < d->batch[0].count; i++)
    TRY(op_equal_dims(c, x[0].dims[d->batch[0].items[i]], x[1].dims[d->batch[1].items[i]], "batch dimension sizes do not match"));
  int rank = d->batch[0].count + d->rest[0].count + d->rest[1].count;
  return rank > LIMIT_RANK ? fail(UNIMPLEMENTED, "a product of rank %d", rank) : OK;
}

status build_xla_dot(struct op_call *c) {
  value_id in[2];
  struct flow_value x[2];
  struct dot d;
  for (uint32_t i = 0; i < 2; i++) {
    TRY(op_input(c, i, &in[i]));
    x[i] = *op_value(c, in[i]);
  }
  TRY(dot_axes(c, x, &d));
  dim dims[LIMIT_RANK];
  int rank = 0;
  for (int i = 0; i < d.batch[0].count; i++)
    dims[rank++] = x[0].dims[d.batch[0].items[i]];
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < d.rest[k].count; i++)
      dims[rank++] = x[k].dims[d.rest[k].items[i]];
  enum dtype out = op_output_dtype(c, 0), sum = sum_dtype(out);
  struct kb kb;
  kb_begin(&kb, c, sum);
  uint32_t buffers[2] = {kb_in(&kb, in[0]), kb_in(&kb, in[1])}, o = kb_out(&kb, out, rank, dims);
  expr_id at[LIMIT_RANK], index[2][LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, dims, at);
  for (int k = 0, next = d.batch[0].count; k < 2; k++) {
    for (int i = 0; i < d.batch[k].count; i++)
      index[k][d.batch[k].items[i]] = at[i];
    for (int i = 0; i < d.rest[k].count; i++)
      index[k][d.rest[k].items[i]] = at[next++];
  }
  struct accumulator acc = acc_zero(&kb, sum);
  for (int i = 0; i < d.contracted[0].count; i++)
    index[0][d.contracted[0].items[i]] = index[1][d.contracted[1].items[i]] =
      kb_for_dim(&kb, LOOP_RED, x[0].dims[d.contracted[0].items[i]]);
  acc_add(&kb, &acc, f_binary(&kb.f, SCALAR_MUL, load_as(&kb, sum, buffers[0], index[0]), load_as(&kb, sum, buffers[1], index[1])));
  kb_close(&kb, d.contracted[0].count);
  store_as(&kb, o, at, acc_get(&kb, &acc));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- Conv ---- */

status xla_conv_axes_read(struct op_call *c, uint32_t batch, uint32_t feature, uint32_t spatial, int rank, struct xla_conv_axes *out) {
  TRY(xla_axis(c, batch, rank - 1, &out->batch));
  TRY(xla_axis(c, feature, rank - 1, &out->feature));
  TRY(xla_axes(c, spatial, rank, &out->spatial));
  bool distinct = out->batch != out->feature && !axis_in(&out->spatial, out->batch) && !axis_in(&out->spatial, out->feature);
  return distinct && out->spatial.count == rank - 2
         ? OK
         : fail(INVALID_ARGUMENT, "dimension_numbers do not name each of %d dimensions once", rank);
}

static status read_windows(struct op_call *c, struct xla_conv *v) {
  int64_t strides[LIMIT_RANK], padding[2 * LIMIT_RANK], spread[LIMIT_RANK], dilation[LIMIT_RANK];
  TRY(xla_numbers(c, 2, "window_strides", v->spatial, strides));
  TRY(xla_numbers(c, 3, "padding", 2 * v->spatial, padding));
  TRY(xla_numbers(c, 4, "lhs_dilation", v->spatial, spread));
  TRY(xla_numbers(c, 5, "rhs_dilation", v->spatial, dilation));
  for (int i = 0; i < v->spatial; i++) {
    int64_t size = op_dim_value(c, v->w.dims[v->filter.spatial.items[i]]);
    if (size < 0)
      return fail(UNIMPLEMENTED, "a filter whose size is not known while compiling: %s", op_shape_text(c, v->w.rank, v->w.dims));
    if (strides[i] < 1 || spread[i] < 1 || dilation[i] < 1)
      return fail(INVALID_ARGUMENT, "strides and dilations must be at least 1");
    v->windows[i] =
      (struct xla_window){size, strides[i], spread[i], dilation[i], padding[2 * i], padding[2 * i + 1], v->x.dims[v->in.spatial.items[i]]};
  }
  return OK;
}

status xla_conv_groups_fit(struct op_call *c, const struct xla_conv *v) {
  TRY(op_equal_dims(c, v->x.dims[v->in.feature], op_mul(c, v->w.dims[v->filter.batch], op_dim(c, v->groups)),
                    "Expected lhs feature dimension to be a multiple of rhs input feature dimension"));
  int64_t groups = v->groups > 1 ? v->groups : v->batch_groups;
  if (groups > 1) {
    dim grouped = v->w.dims[v->filter.feature], batch = v->x.dims[v->in.batch];
    TRY(op_equal_dims(c, dim_mod(op_dims(c), grouped, op_dim(c, groups)), op_dim(c, 0),
                      "Expected rhs output feature dimension to be divisible by the groups"));
    TRY(op_equal_dims(c, dim_mod(op_dims(c), batch, op_dim(c, v->batch_groups)), op_dim(c, 0),
                      "Expected lhs batch dimension to be divisible by batch_group_count"));
  }
  return OK;
}

static status conv_read(struct op_call *c, struct xla_conv *v) {
  if (v->x.rank != v->w.rank || v->x.rank < 2)
    return fail(INVALID_ARGUMENT, "lhs and rhs must have the same rank of at least 2: %s, %s", op_shape_text(c, v->x.rank, v->x.dims),
                op_shape_text(c, v->w.rank, v->w.dims));
  v->spatial = v->x.rank - 2;
  TRY(xla_conv_axes_read(c, 7, 8, 11, v->x.rank, &v->in));
  TRY(xla_conv_axes_read(c, 3, 4, 6, v->x.rank, &v->filter));
  TRY(xla_conv_axes_read(c, 9, 10, 12, v->x.rank, &v->out));
  TRY(xla_numbers(c, 6, "feature_group_count", 1, &v->groups));
  v->batch_groups = node_attr_int(c->node, "batch_group_count", 1);
  if (v->groups < 1 || v->batch_groups < 1 || (v->groups > 1 && v->batch_groups > 1))
    return fail(INVALID_ARGUMENT, "feature_group_count %lld and batch_group_count %lld", (long long)v->groups, (long long)v->batch_groups);
  TRY(xla_conv_groups_fit(c, v));
  return read_windows(c, v);
}

/* One product: of the window's element at `offset` and the channel, with what lies behind the padding as 0. */
static struct element conv_product(struct kb *kb, const struct xla_conv *v, const uint32_t *buffers, const expr_id *at,
                                   const expr_id *offset, expr_id channel) {
  expr_id x[LIMIT_RANK], w[LIMIT_RANK], inside = expr_int(kb->k, DTYPE_BOOL, 1), feature = at[v->out.feature];
  x[v->in.batch] = at[v->out.batch];
  x[v->in.feature] = w[v->filter.batch] = channel;
  w[v->filter.feature] = feature;
  int64_t groups = v->groups > 1 ? v->groups : v->batch_groups;
  if (groups > 1) {
    expr_id of_group = kb_div(kb, kb_dim(kb, v->w.dims[v->filter.feature]), kb_int(kb, groups)), group = kb_div(kb, feature, of_group);
    if (v->groups > 1)
      x[v->in.feature] = kb_add(kb, kb_mul(kb, group, kb_dim(kb, v->w.dims[v->filter.batch])), channel);
    else
      x[v->in.batch] = kb_add(kb, kb_mul(kb, group, kb_div(kb, kb_dim(kb, v->x.dims[v->in.batch]), kb_int(kb, groups))), at[v->out.batch]);
  }
  for (int i = 0; i < v->spatial; i++) {
    expr_id exists;
    w[v->filter.spatial.items[i]] = offset[i];
    x[v->in.spatial.items[i]] = xla_window_place(kb, &v->windows[i], at[v->out.spatial.items[i]], offset[i], &exists);
    inside = kb_and(kb, inside, exists);
  }
  enum dtype sum = kb->f.dtype;
  struct element e = f_select(&kb->f, real_element(inside), load_as(kb, sum, buffers[0], x), f_const(&kb->f, 0));
  return f_binary(&kb->f, SCALAR_MUL, e, load_as(kb, sum, buffers[1], w));
}

void xla_conv_dims(struct op_call *c, const struct xla_conv *v, dim *dims) {
  dims[v->out.batch] = dim_floordiv(op_dims(c), v->x.dims[v->in.batch], op_dim(c, v->batch_groups));
  dims[v->out.feature] = v->w.dims[v->filter.feature];
  for (int i = 0; i < v->spatial; i++)
    dims[v->out.spatial.items[i]] = xla_window_count(c, &v->windows[i]);
}

/* The elements of a window. Padding alone makes windows over an axis of no places, of which there is nothing to load. */
static dim window_reach(struct op_call *c, const struct xla_window *w) {
  dim size = op_dim(c, w->size);
  if (w->low <= 0 && w->high <= 0)
    return size;
  return dim_min(op_dims(c), size, op_mul(c, size, w->in));
}

status xla_conv_values(struct op_call *c, const struct xla_conv *v, value_id x, value_id w, enum dtype dtype, value_id *result) {
  dim dims[LIMIT_RANK];
  xla_conv_dims(c, v, dims);
  enum dtype sum = sum_dtype(dtype);
  struct kb kb;
  kb_begin(&kb, c, sum);
  uint32_t buffers[2] = {kb_in(&kb, x), kb_in(&kb, w)}, o = kb_out(&kb, dtype, v->x.rank, dims);
  expr_id at[LIMIT_RANK], offset[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, v->x.rank, dims, at);
  struct accumulator acc = acc_zero(&kb, sum);
  for (int i = 0; i < v->spatial; i++)
    offset[i] = kb_for_dim(&kb, LOOP_RED, window_reach(c, &v->windows[i]));
  expr_id channel = kb_for_dim(&kb, LOOP_RED, v->w.dims[v->filter.batch]);
  acc_add(&kb, &acc, conv_product(&kb, v, buffers, at, offset, channel));
  kb_close(&kb, v->spatial + 1);
  store_as(&kb, o, at, acc_get(&kb, &acc));
  kb_close(&kb, v->x.rank);
  *result = kb_value(&kb, o);
  return kb_finish(&kb);
}

status build_xla_conv(struct op_call *c) {
  value_id in[2], out;
  struct xla_conv v;
  TRY(op_input(c, 0, &in[0]));
  TRY(op_input(c, 1, &in[1]));
  v.x = *op_value(c, in[0]);
  v.w = *op_value(c, in[1]);
  TRY(conv_read(c, &v));
  TRY(xla_conv_values(c, &v, in[0], in[1], op_output_dtype(c, 0), &out));
  op_set_output(c, 0, out);
  return OK;
}
