/* ops_uniform_conv.c: convolutions of uniformly quantised numbers. */
#include "ir/ops/quantized/uniform.h"
#include "ir/ops/xla/xla.h"

/* ---- the geometry, from attributes ---- */

static void default_axes(int rank, struct xla_conv_axes *out) {
  *out = (struct xla_conv_axes){.feature = 1};
  for (int i = 2; i < rank; i++)
    out->spatial.items[out->spatial.count++] = i;
}

static status read_axes(struct op_call *c, struct xla_conv *v) {
  struct axis_list spatial;
  TRY(xla_axes(c, 3, v->x.rank, &spatial));
  if (spatial.count) {
    TRY(xla_conv_axes_read(c, 1, 2, 3, v->x.rank, &v->in));
    TRY(xla_conv_axes_read(c, 4, 5, 6, v->x.rank, &v->filter));
    return xla_conv_axes_read(c, 7, 8, 9, v->x.rank, &v->out);
  }
  default_axes(v->x.rank, &v->in);
  default_axes(v->x.rank, &v->out);
  default_axes(v->x.rank, &v->filter);
  v->filter.batch = 1;
  v->filter.feature = 0;
  return OK;
}

/* A list of `count` integers, all at least `least`; where it is empty, or not there, all are that. */
static status read_list(struct op_call *c, const char *name, int count, int64_t least, int64_t *out) {
  const struct attr_value *list = node_attr(c->node, name);
  uint32_t have = list && list->kind == ATTR_LIST ? list->list.count : 0;
  if (have && have != (uint32_t)count)
    return fail(INVALID_ARGUMENT, "Size of %s Attr must be %d, not %u", name, count, have);
  for (int i = 0; i < count; i++) {
    out[i] = have ? list->list.items[i].i : least;
    if (out[i] < least)
      return fail(INVALID_ARGUMENT, "All elements of %s must be >= %lld, not %lld", name, (long long)least, (long long)out[i]);
  }
  return OK;
}

static int64_t spread(int64_t size, int64_t by) { return size ? (size - 1) * by + 1 : 0; }

/* As many windows as the axis has places, by the stride: what they reach beyond it, on both sides. */
static status pad_same(struct op_call *c, struct xla_window *w) {
  int64_t size = op_dim_value(c, w->in);
  if (size < 0 && w->stride == 1)
    size = 1; /* any size has the same padding */
  if (size < 0)
    return fail(UNIMPLEMENTED, "padding SAME with a stride, over a size that is not known while compiling; use EXPLICIT padding");
  int64_t places = spread(size, w->base), windows = (places + w->stride - 1) / w->stride;
  int64_t total = (windows - 1) * w->stride + spread(w->size, w->dilation) - places;
  w->low = total > 0 ? total / 2 : 0;
  w->high = total > 0 ? total - w->low : 0;
  return OK;
}

static status read_windows(struct op_call *c, struct xla_conv *v) {
  int64_t strides[LIMIT_RANK], padding[2 * LIMIT_RANK], base[LIMIT_RANK], dilation[LIMIT_RANK];
  const char *kind = node_attr_string(c->node, "padding", "");
  bool same = !strcmp(kind, "SAME"), given = !strcmp(kind, "EXPLICIT");
  TRY(read_list(c, "window_strides", v->spatial, 1, strides));
  TRY(read_list(c, "lhs_dilation", v->spatial, 1, base));
  TRY(read_list(c, "rhs_dilation", v->spatial, 1, dilation));
  TRY(read_list(c, "explicit_padding", 2 * v->spatial, 0, padding));
  if (!same && !given && strcmp(kind, "VALID"))
    return fail(INVALID_ARGUMENT, "padding Attr must be one of [EXPLICIT | SAME | VALID], but given: %s", kind);
  for (int i = 0; i < v->spatial; i++) {
    struct xla_window *w = &v->windows[i];
    int64_t size = op_dim_value(c, v->w.dims[v->filter.spatial.items[i]]);
    if (size < 0)
      return fail(UNIMPLEMENTED, "a filter whose size is not known while compiling: %s", op_shape_text(c, v->w.rank, v->w.dims));
    *w = (struct xla_window){size, strides[i], base[i], dilation[i], padding[2 * i], padding[2 * i + 1], v->x.dims[v->in.spatial.items[i]]};
    if (same)
      TRY(pad_same(c, w));
  }
  return OK;
}

static status read_groups(struct op_call *c, struct xla_conv *v) {
  v->groups = node_attr_int(c->node, "feature_group_count", 1);
  v->batch_groups = node_attr_int(c->node, "batch_group_count", 1);
  if (v->groups < 1 || v->batch_groups < 1)
    return fail(INVALID_ARGUMENT, "feature_group_count %lld and batch_group_count %lld must be positive", (long long)v->groups,
                (long long)v->batch_groups);
  if (v->groups > 1 && v->batch_groups > 1)
    return fail(UNIMPLEMENTED, "groups of features and of batches at once");
  return xla_conv_groups_fit(c, v);
}

/* The two inputs, their geometry and the right one's scale, which is input `first`. */
static status conv_begin(struct op_call *c, uint32_t first, value_id in[2], struct xla_conv *v, struct uniform_scale *right) {
  TRY(op_input(c, 0, &in[0]));
  TRY(op_input(c, 1, &in[1]));
  v->x = *op_value(c, in[0]);
  v->w = *op_value(c, in[1]);
  if (v->x.rank != v->w.rank || v->x.rank < 3)
    return fail(INVALID_ARGUMENT, "lhs and rhs must have the same rank of at least 3: %s, %s", op_shape_text(c, v->x.rank, v->x.dims),
                op_shape_text(c, v->w.rank, v->w.dims));
  v->spatial = v->x.rank - 2;
  TRY(read_axes(c, v));
  TRY(read_groups(c, v));
  TRY(read_windows(c, v));
  int64_t axis = node_attr_int(c->node, "rhs_quantization_axis", -1);
  if (axis != -1 && axis != v->filter.feature)
    return fail(INVALID_ARGUMENT, "rhs_quantization_axis Attr must be -1 (per-tensor) or %d (per-channel).", v->filter.feature);
  return uniform_scale_read(c, first, (int)axis, v->w.rank, v->w.dims, right);
}

/* ---- the ops ---- */

/* Around the left side stands its zero point as 8 bits, which is a 0 once it is centred if it fits into them. */
static status check_padding(struct op_call *c, const struct xla_conv *v, const struct uniform_scale *left) {
  bool padded = false;
  for (int i = 0; i < v->spatial; i++)
    padded |= v->windows[i].low || v->windows[i].high || v->windows[i].base > 1;
  if (!padded)
    return OK;
  struct kb kb;
  guard_begin(&kb, c);
  expr_id zero = expr_cast(kb.k, DTYPE_INT64, kb_load(&kb, kb_in(&kb, left->zeros), NULL).re);
  expr_id fits = kb_and(&kb, kb_le(&kb, kb_int(&kb, -128), zero), kb_le(&kb, zero, kb_int(&kb, 127)));
  kb_check(&kb, fits, UNIMPLEMENTED, "padding of lhs_zero_points %d, which is beyond 8 bits", zero, NO_EXPR);
  return guard_finish(&kb);
}

status build_uniform_quantized_conv(struct op_call *c) {
  value_id in[2], a, b, sums;
  struct xla_conv v;
  struct uniform_scale left, right, to;
  TRY(conv_begin(c, 4, in, &v, &right));
  if (node_attr_int(c->node, "lhs_quantization_axis", -1) != -1)
    return fail(INVALID_ARGUMENT, "lhs_quantization_axis Attr must be -1 (per-tensor).");
  TRY(uniform_scale_read(c, 2, -1, v.x.rank, v.x.dims, &left));
  int64_t axis = node_attr_int(c->node, "output_quantization_axis", -1);
  if (axis != -1 && axis != v.out.feature)
    return fail(INVALID_ARGUMENT, "output_quantization_axis Attr must be -1 (per-tensor) or %d (per-channel).", v.out.feature);
  if (axis >= 0 && right.axis < 0)
    return fail(INVALID_ARGUMENT, "If rhs is per-tensor quantized, output must be also per-tensor quantized.");
  dim dims[LIMIT_RANK];
  xla_conv_dims(c, &v, dims);
  TRY(uniform_scale_read(c, 6, (int)axis, v.x.rank, dims, &to));
  TRY(check_padding(c, &v, &left));
  TRY(uniform_centred(c, in[0], &left, &a));
  TRY(uniform_centred(c, in[1], &right, &b));
  TRY(xla_conv_values(c, &v, a, b, DTYPE_INT32, &sums));
  return uniform_sums_out(c, sums, v.out.feature, &left, &right, &to);
}

status build_uniform_quantized_conv_hybrid(struct op_call *c) {
  value_id in[2], a, b, sums;
  struct xla_conv v;
  struct uniform_scale left, right;
  TRY(conv_begin(c, 2, in, &v, &right));
  if (v.batch_groups > 1)
    return fail(UNIMPLEMENTED, "floats in groups of batches (batch_group_count %lld)", (long long)v.batch_groups);
  TRY(uniform_of_floats(c, in[0], v.in.batch, &a, &left));
  TRY(uniform_centred(c, in[1], &right, &b));
  TRY(xla_conv_values(c, &v, a, b, DTYPE_INT32, &sums));
  return uniform_float_sums_out(c, sums, &left, v.out.batch, &right, v.out.feature);
}
