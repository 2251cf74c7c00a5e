/* ops_conv.c: convolutions of two and three spatial axes with their gradients, as contractions: parallel over the result,
 * reduced over window and channels. Padding is written out before (conv_pad.c), so that no sum tests for a border.
 * Depthwise convolutions are the same with the input's channel chosen by the output's. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/nn/conv.h"

/* ---- geometry ---- */

static status read_explicit(struct op_call *c, struct conv *v) {
  const struct attr_value *list = node_attr(c->node, "explicit_paddings");
  if (!list || list->list.count != (uint32_t)v->layout.rank * 2)
    return fail(INVALID_ARGUMENT, "explicit_paddings must have %d elements", v->layout.rank * 2);
  for (int i = 0; i < v->layout.spatial; i++) {
    int axis = layout_axis(&v->layout, i);
    v->axes[i].explicit_before = list->list.items[2 * axis].i;
    v->axes[i].explicit_after = list->list.items[2 * axis + 1].i;
    TRY(window_explicit(&v->axes[i]));
  }
  return OK;
}

/* Groups have as many input channels as the filter, and all as many outputs. */
static status check_groups(struct op_call *c, dim in, dim per, dim out) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id all = kb_dim(&guard, in), each = kb_dim(&guard, per), to = kb_dim(&guard, out), zero = kb_int(&guard, 0), one = kb_int(&guard, 1);
  kb_check(&guard, kb_and(&guard, kb_lt(&guard, zero, each), kb_le(&guard, each, all)), INVALID_ARGUMENT,
           "input depth must be evenly divisible by filter depth: %d vs %d", all, each);
  each = expr_binary(guard.k, SCALAR_MAX, each, one);
  kb_check(&guard, kb_eq(&guard, kb_mod(&guard, all, each), zero), INVALID_ARGUMENT,
           "input depth must be evenly divisible by filter depth: %d vs %d", all, each);
  expr_id groups = expr_binary(guard.k, SCALAR_MAX, kb_div(&guard, all, each), one);
  kb_check(&guard, kb_eq(&guard, kb_mod(&guard, to, groups), zero), INVALID_ARGUMENT,
           "output depth must be evenly divisible by number of groups: %d vs %d", to, groups);
  return guard_finish(&guard);
}

/* Filters are [spatial ..., in / groups, out], depthwise ones [spatial ..., in, multiplier]. */
static status conv_channels(struct op_call *c, struct conv *v, const struct flow_value *filter) {
  struct dim_table *t = op_dims(c);
  dim fin = filter->dims[v->layout.spatial], fout = filter->dims[v->layout.spatial + 1];
  v->group_in = fin;
  v->group_out = v->out_channels = fout;
  if (v->depthwise) {
    v->multiplier = fout;
    v->out_channels = dim_mul(t, fin, fout);
    return op_equal_dims(c, v->in_channels, fin, "input and filter must have the same depth");
  }
  if (op_assume_equal(c, v->in_channels, fin))
    return op_equal_dims(c, v->in_channels, fin, "input and filter must have the same depth");
  TRY(check_groups(c, v->in_channels, fin, fout));
  dim one = op_dim(c, 1), groups = dim_max(t, dim_floordiv(t, v->in_channels, dim_max(t, fin, one)), one);
  v->grouped = true;
  v->group_out = dim_floordiv(t, fout, groups);
  return OK;
}

/* `dims` are the data's; the filter's shape is known. */
static status conv_begin(struct op_call *c, int rank, const dim *dims, const struct flow_value *filter, struct conv *v) {
  enum padding padding;
  int64_t strides[LIMIT_RANK], dilations[LIMIT_RANK];
  TRY(layout_read(c, rank, &v->layout));
  if (filter->rank != rank)
    return fail(INVALID_ARGUMENT, "filter must be %d-dimensional: %s", rank, op_shape_text(c, filter->rank, filter->dims));
  TRY(window_padding(c, &padding));
  TRY(window_list(c, "strides", rank, strides));
  TRY(window_list(c, "dilations", rank, dilations));
  int channel = layout_channel(&v->layout);
  if (strides[0] != 1 || strides[channel] != 1 || dilations[0] != 1 || dilations[channel] != 1)
    return fail(v->layout.spatial == 2 ? UNIMPLEMENTED : INVALID_ARGUMENT,
                "strides and dilations in the batch and depth dimensions are not supported");
  if (padding == PADDING_EXPLICIT)
    TRY(read_explicit(c, v));
  for (int i = 0; i < v->layout.spatial; i++) {
    int axis = layout_axis(&v->layout, i);
    v->axes[i].in = dims[axis];
    v->axes[i].size = filter->dims[i];
    v->axes[i].stride = op_dim(c, strides[axis]);
    v->axes[i].dilation = dilations[axis];
    TRY(window_solve(c, padding, &v->axes[i]));
  }
  v->depthwise = OP_ROW(c, conv_row)->depthwise;
  if (v->depthwise && strides[layout_axis(&v->layout, 0)] != strides[layout_axis(&v->layout, 1)])
    return fail(INVALID_ARGUMENT, "only equal length strides in the row and column dimensions are supported");
  v->batch = dims[0];
  v->in_channels = dims[channel];
  v->dtype = op_output_dtype(c, 0);
  v->sum = sum_dtype(v->dtype);
  return conv_channels(c, v, filter);
}

void conv_data_dims(const struct conv *v, bool output, dim *dims) {
  dims[0] = v->batch;
  dims[layout_channel(&v->layout)] = output ? v->out_channels : v->in_channels;
  for (int i = 0; i < v->layout.spatial; i++)
    dims[layout_axis(&v->layout, i)] = output ? v->axes[i].out : v->axes[i].in;
}
void conv_data_index(const struct conv *v, expr_id batch, const expr_id *spatial, expr_id channel, expr_id *index) {
  index[0] = batch;
  index[layout_channel(&v->layout)] = channel;
  for (int i = 0; i < v->layout.spatial; i++)
    index[layout_axis(&v->layout, i)] = spatial[i];
}

static status check_gradient(struct op_call *c, const struct conv *v, value_id gradient) {
  struct flow_value g = *op_value(c, gradient);
  dim wanted[LIMIT_RANK];
  conv_data_dims(v, true, wanted);
  if (g.rank != v->layout.rank)
    return fail(INVALID_ARGUMENT, "out_backprop must be %d-dimensional: %s", v->layout.rank, op_shape_text(c, g.rank, g.dims));
  for (int i = 0; i < g.rank; i++)
    TRY(op_equal_dims(c, g.dims[i], wanted[i], "size of out_backprop doesn't match computed"));
  return OK;
}

/* The input's element under output position o and window element k, 0 outside; where columns are merged, k counts them with channels. */
static struct element load_under(struct kb *kb, const struct conv *v, bool merged, uint32_t buffer, expr_id batch, const expr_id *o,
                                 const expr_id *k, expr_id channel) {
  expr_id at[WINDOW_SPATIAL], index[LIMIT_RANK], inside = expr_int(kb->k, DTYPE_BOOL, 1);
  int n = v->layout.spatial;
  for (int i = 0; i < n; i++) {
    at[i] = window_position(kb, &v->axes[i], o[i], k[i]);
    if (v->is_whole || window_stays_inside(kb->c, &v->axes[i]))
      continue;
    inside = kb_and(kb, inside, window_within(kb, at[i], v->axes[i].in));
    at[i] = kb_clamp(kb, at[i], kb_dim(kb, v->axes[i].in));
  }
  if (merged) {
    dim step = dim_mul(op_dims(kb->c), v->axes[n - 1].stride, v->in_channels);
    channel = kb_add(kb, kb_mul(kb, o[n - 1], kb_dim(kb, step)), k[n - 1]);
    index[0] = batch;
    memcpy(&index[1], at, sizeof *at * (size_t)(n - 1));
    index[n] = channel;
  } else {
    conv_data_index(v, batch, at, channel, index);
  }
  struct element e = load_as(kb, v->sum, buffer, index);
  return v->is_whole ? e : f_select(&kb->f, real_element(inside), e, f_const(&kb->f, 0));
}

/* Opens the terms that are inside on the axes from `first` on. */
static void test_places(struct kb *kb, const struct conv *v, int first, const expr_id *o, const expr_id *k) {
  expr_id inside = NO_EXPR;
  for (int i = first; i < v->layout.spatial; i++) {
    expr_id here = window_within(kb, window_position(kb, &v->axes[i], o[i], k[i]), v->axes[i].in);
    inside = i == first ? here : kb_and(kb, inside, here);
  }
  kb_if(kb, inside);
}

/* ---- forward ---- */

/* Red loops over the window of output o, and over the channels that a result sums; fi: the filter's index, *from: the input's channel. */
static int window_loops(struct kb *kb, const struct conv *v, bool merged, const expr_id *o, expr_id channel, expr_id *fi, expr_id *from) {
  int n = v->layout.spatial;
  *from = NO_EXPR;
  for (int i = 0; i < n; i++) {
    dim size = merged && i == n - 1 ? dim_mul(op_dims(kb->c), v->axes[i].size, v->in_channels) : v->axes[i].size;
    fi[i] = v->cut[i] ? conv_cut_loop(kb, v, i, o[i]) : kb_for_dim(kb, LOOP_RED, size);
  }
  if (merged) {
    fi[n] = channel;
    return n;
  }
  if (v->depthwise) {
    *from = fi[n] = kb_div(kb, channel, kb_dim(kb, v->multiplier));
    fi[n + 1] = kb_mod(kb, channel, kb_dim(kb, v->multiplier));
    return n;
  }
  *from = fi[n] = kb_for_dim(kb, LOOP_RED, v->group_in);
  fi[n + 1] = channel;
  if (v->grouped)
    *from = kb_add(kb, *from, kb_mul(kb, kb_div(kb, channel, kb_dim(kb, v->group_out)), kb_dim(kb, v->group_in)));
  return n + 1;
}

/* In place: the same element of the filter of which this one is the turned one. */
static void turn_index(struct kb *kb, const struct conv *v, expr_id *fi) {
  int n = v->layout.spatial;
  expr_id channel = fi[n];
  for (int i = 0; i < n; i++)
    fi[i] = kb_sub(kb, kb_int(kb, op_dim_value(kb->c, v->axes[i].size) - 1), fi[i]);
  if (v->depthwise)
    return;
  fi[n] = fi[n + 1];
  fi[n + 1] = channel;
}

status conv_forward(struct op_call *c, struct conv *v, value_id input, value_id filter) {
  struct kb kb;
  dim dims[LIMIT_RANK];
  int rank = v->layout.rank, n = v->layout.spatial;
  value_id narrow;
  if (!conv_is_direct(c, v)) {
    conv_cut_axes(c, v);
    TRY(conv_pad_input(c, v, &input));
  }
  if (conv_is_narrow(c, v)) {
    TRY(conv_narrow_forward(c, v, input, filter, false, &narrow));
    op_set_output(c, 0, narrow);
    return OK;
  }
  bool merged = !v->is_tested && !v->is_turned && conv_columns_merge(c, v);
  if (merged) {
    input = conv_merge_axes(c, input, n);
    filter = conv_merge_axes(c, filter, n - 1);
  }
  kb_begin(&kb, c, v->sum);
  conv_data_dims(v, true, dims);
  uint32_t x = kb_in(&kb, input), w = kb_in(&kb, filter), y = kb_out(&kb, v->dtype, rank, dims);
  expr_id index[LIMIT_RANK], o[WINDOW_SPATIAL], fi[LIMIT_RANK], from;
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  for (int i = 0; i < n; i++)
    o[i] = index[layout_axis(&v->layout, i)];
  struct accumulator acc = acc_zero(&kb, v->sum);
  int red = window_loops(&kb, v, merged, o, index[layout_channel(&v->layout)], fi, &from);
  if (v->is_tested) {
    test_places(&kb, v, n - 1, o, fi);
    red++;
  }
  struct element a = load_under(&kb, v, merged, x, index[0], o, fi, from);
  if (v->is_turned)
    turn_index(&kb, v, fi);
  acc_add(&kb, &acc, f_binary(&kb.f, SCALAR_MUL, a, load_as(&kb, v->sum, w, fi)));
  kb_close(&kb, red);
  store_as(&kb, y, index, acc_get(&kb, &acc));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, y));
  return kb_finish_guarded(&kb);
}

static status build_conv(struct op_call *c) {
  value_id input, filter;
  struct conv v = {0};
  TRY(op_input(c, 0, &input));
  TRY(op_input(c, 1, &filter));
  struct flow_value x = *op_value(c, input), w = *op_value(c, filter);
  if (!OP_ROW(c, conv_row)->depthwise && w.rank >= 3) { /* of those sizes no filter can be empty */
    dim least = op_dim(c, 1);
    for (int i = 0; i < w.rank - 1; i++)
      TRY(op_require_le(c, least, w.dims[i], "filter must not have zero elements"));
  }
  TRY(conv_begin(c, x.rank, x.dims, &w, &v));
  if (conv_spreads(c, &v)) {
    TRY(conv_spread_input(c, &v, &input));
    conv_spread(c, &v, w.dims);
    filter = op_alias(c, filter, w.dtype, w.rank, w.dims);
  }
  return conv_forward(c, &v, input, filter);
}
status build_conv2d(struct op_call *c) { return build_conv(c); }

/* As Conv2D has it, but of values that are no inputs, and in their dtype. */
status op_conv2d(struct op_call *c, value_id input, value_id filter, value_id *out) {
  struct conv v = {0};
  struct flow_value x = *op_value(c, input), w = *op_value(c, filter);
  TRY(conv_begin(c, x.rank, x.dims, &w, &v));
  v.dtype = v.sum = x.dtype;
  TRY(conv_forward(c, &v, input, filter));
  *out = c->out[0].value;
  return OK;
}
status build_conv3d(struct op_call *c) { return build_conv(c); }
status build_depthwise_conv2d(struct op_call *c) { return build_conv(c); }

/* Conv: of two or three spatial axes, whichever the input has, behind `batch_dims` batch axes. */
status build_general_conv(struct op_call *c) {
  value_id input, filter;
  struct conv v = {0};
  TRY(op_input(c, 0, &input));
  TRY(op_input(c, 1, &filter));
  struct flow_value x = *op_value(c, input), w = *op_value(c, filter);
  int64_t batches = node_attr_int(c->node, "batch_dims", 1), spatial = x.rank - 1 - batches;
  if (node_attr_int(c->node, "groups", 1) != 1)
    return fail(UNIMPLEMENTED, "Grouped/Depthwise Convolutions are not supported yet.");
  if (batches < 1 || (spatial != 2 && spatial != 3))
    return fail(INVALID_ARGUMENT, "The input must have 2 or 3 spatial dimensions but got %lld", (long long)spatial);
  TRY(op_require_le(c, op_dim(c, 1), op_count(c, w.rank, w.dims), "filter must not have zero elements"));
  int more = (int)batches - 1, rank = x.rank - more;
  dim dims[LIMIT_RANK];
  memcpy(dims, &x.dims[more], sizeof *dims * (size_t)rank);
  dims[0] = op_count(c, (int)batches, x.dims);
  TRY(conv_begin(c, rank, dims, &w, &v));
  TRY(op_equal_dims(c, v.in_channels, v.group_in, "Input depth must be equal to filter depth"));
  TRY(conv_forward(c, &v, more ? op_alias(c, input, x.dtype, rank, dims) : input, filter));
  if (!more)
    return OK;
  struct flow_value y = *op_value(c, c->out[0].value);
  dim out[LIMIT_RANK];
  memcpy(out, x.dims, sizeof *out * (size_t)batches);
  memcpy(&out[batches], &y.dims[1], sizeof *out * (size_t)(rank - 1));
  op_set_output(c, 0, op_alias(c, c->out[0].value, y.dtype, x.rank, out));
  return OK;
}

/* ---- gradient of the input: ops_conv_input.c ---- */

/* input_sizes may leave out batch and channels, which the gradient and the filter then tell. */
static status input_dims(struct op_call *c, const struct flow_value *filter, const struct flow_value *gradient, dim *dims) {
  value_id sizes;
  dim elements[LIMIT_RANK];
  int count;
  struct layout layout;
  TRY(op_input(c, 0, &sizes));
  TRY(op_shape_dims(c, sizes, "input_sizes", &count, elements));
  TRY(layout_read(c, gradient->rank, &layout));
  if (count == gradient->rank) {
    memcpy(dims, elements, sizeof *dims * (size_t)count);
    return OK;
  }
  if (count != layout.spatial || filter->rank != gradient->rank)
    return fail(INVALID_ARGUMENT, "input_sizes must have %d or %d elements, has %d", layout.rank, layout.spatial, count);
  dims[0] = gradient->dims[0];
  dims[layout_channel(&layout)] = filter->dims[layout.spatial];
  for (int i = 0; i < count; i++)
    dims[layout_axis(&layout, i)] = elements[i];
  return OK;
}

/* The first versions of the gradients take what has the shape in the shape's place. */
static bool takes_values(const struct op_call *c) { return !op_takes(c, "input_sizes") && !op_takes(c, "filter_sizes"); }
static status value_dims(struct op_call *c, uint32_t i, int rank, dim *dims) {
  value_id v;
  TRY(op_input(c, i, &v));
  struct flow_value x = *op_value(c, v);
  memcpy(dims, x.dims, sizeof *dims * LIMIT_RANK);
  return x.rank == rank ? OK : fail(INVALID_ARGUMENT, "input %u must be %d-dimensional: %s", i, rank, op_shape_text(c, x.rank, x.dims));
}

static status check_filter_depth(struct op_call *c, int rank, const dim *filter) {
  return rank < 4 ? OK : op_require_le(c, op_dim(c, 1), filter[rank - 2], "filter depth must be positive");
}

static status build_backprop_input(struct op_call *c) {
  value_id filter, gradient;
  struct conv v = {0};
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 1, &filter));
  TRY(op_input(c, 2, &gradient));
  struct flow_value w = *op_value(c, filter), g = *op_value(c, gradient);
  TRY(takes_values(c) ? value_dims(c, 0, g.rank, dims) : input_dims(c, &w, &g, dims));
  TRY(check_filter_depth(c, w.rank, w.dims));
  TRY(conv_begin(c, g.rank, dims, &w, &v));
  TRY(check_gradient(c, &v, gradient));
  if (!conv_spreads(c, &v))
    return conv_backprop_input(c, &v, filter, gradient);
  struct conv spread = v;
  conv_spread(c, &spread, w.dims);
  TRY(conv_backprop_input(c, &spread, op_alias(c, filter, w.dtype, w.rank, w.dims), gradient));
  value_id result = c->out[0].value;
  TRY(conv_gather_input(c, &v, &result));
  op_set_output(c, 0, result);
  return OK;
}
status build_conv2d_backprop_input(struct op_call *c) { return build_backprop_input(c); }
status build_conv3d_backprop_input(struct op_call *c) { return build_backprop_input(c); }
status build_depthwise_conv2d_backprop_input(struct op_call *c) { return build_backprop_input(c); }

/* ---- gradient of the filter: reduced over the batch and all output positions ---- */

static status conv_backprop_filter(struct op_call *c, struct conv *v, value_id input, value_id gradient, const dim *filter) {
  struct kb kb;
  int n = v->layout.spatial, rank = v->layout.rank;
  dim dims[LIMIT_RANK];
  value_id result;
  bool inside = conv_cut_outputs(c, v) || conv_test_taps(c, v);
  if (!inside)
    TRY(conv_pad_input(c, v, &input));
  if (conv_is_narrow(c, v)) {
    TRY(conv_narrow_filter(c, v, input, gradient, &result));
    op_set_output(c, 0, result);
    return OK;
  }
  bool merged = !inside && conv_columns_merge(c, v), single = v->depthwise && op_dim_value(c, v->multiplier) == 1;
  memcpy(dims, filter, sizeof *dims * (size_t)rank);
  if (merged) {
    input = conv_merge_axes(c, input, n);
    dims[n - 1] = dim_mul(op_dims(c), filter[n - 1], filter[n]);
    dims[n] = filter[n + 1];
  }
  kb_begin(&kb, c, v->sum);
  int out_rank = merged || single ? rank - 1 : rank; /* channels, which are the lanes, last */
  uint32_t x = kb_in(&kb, input), g = kb_in(&kb, gradient), y = kb_out(&kb, v->dtype, out_rank, dims);
  expr_id index[LIMIT_RANK], o[WINDOW_SPATIAL], gi[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, out_rank, dims, index);
  expr_id from = index[n], to = index[out_rank - 1];
  if (v->depthwise && !single)
    to = kb_add(&kb, kb_mul(&kb, from, kb_dim(&kb, v->multiplier)), to);
  if (v->grouped)
    from = kb_add(&kb, from, kb_mul(&kb, kb_div(&kb, to, kb_dim(&kb, v->group_out)), kb_dim(&kb, v->group_in)));
  struct accumulator acc = acc_zero(&kb, v->sum);
  expr_id batch = kb_for_dim(&kb, LOOP_RED, v->batch);
  for (int i = 0; i < n; i++)
    o[i] = conv_output_loop(&kb, v, i, index[i]);
  conv_data_index(v, batch, o, to, gi);
  if (v->is_tested)
    test_places(&kb, v, 0, o, index);
  struct element a = load_under(&kb, v, merged, x, batch, o, index, from);
  acc_add(&kb, &acc, f_binary(&kb.f, SCALAR_MUL, a, load_as(&kb, v->sum, g, gi)));
  kb_close(&kb, n + 1 + v->is_tested);
  store_as(&kb, y, index, acc_get(&kb, &acc));
  kb_close(&kb, out_rank);
  result = kb_value(&kb, y);
  TRY(kb_finish_guarded(&kb));
  op_set_output(c, 0, merged || single ? op_alias(c, result, v->dtype, rank, filter) : result);
  return OK;
}

static status build_backprop_filter(struct op_call *c) {
  value_id input, sizes, gradient;
  struct conv v = {0};
  dim filter[LIMIT_RANK];
  TRY(op_input(c, 0, &input));
  TRY(op_input(c, 1, &sizes));
  TRY(op_input(c, 2, &gradient));
  struct flow_value x = *op_value(c, input);
  TRY(takes_values(c) ? value_dims(c, 1, x.rank, filter) : op_sizes(c, sizes, "filter_sizes", x.rank, filter));
  struct flow_value w = {.rank = x.rank};
  memcpy(w.dims, filter, sizeof *filter * (size_t)x.rank);
  TRY(check_filter_depth(c, w.rank, w.dims));
  TRY(conv_begin(c, x.rank, x.dims, &w, &v));
  TRY(check_gradient(c, &v, gradient));
  if (!conv_spreads(c, &v))
    return conv_backprop_filter(c, &v, input, gradient, filter);
  TRY(conv_spread_input(c, &v, &input));
  conv_spread(c, &v, w.dims);
  TRY(conv_backprop_filter(c, &v, input, gradient, w.dims));
  struct flow_value result = *op_value(c, c->out[0].value);
  op_set_output(c, 0, op_alias(c, c->out[0].value, result.dtype, x.rank, filter));
  return OK;
}
status build_conv2d_backprop_filter(struct op_call *c) { return build_backprop_filter(c); }
status build_conv3d_backprop_filter(struct op_call *c) { return build_backprop_filter(c); }
status build_depthwise_conv2d_backprop_filter(struct op_call *c) { return build_backprop_filter(c); }
