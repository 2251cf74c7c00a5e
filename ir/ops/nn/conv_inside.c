/* conv_inside.c: sums of convolutions that run over what lies inside: of an output the taps, of a tap the outputs. See conv.h. */
#include "ir/ops/nn/conv.h"

/* Whether sums over all channels of a pixel are what it has, which lie side by side. */
static bool is_plain(const struct conv *v) { return !v->depthwise && !v->grouped && !v->layout.channels_first; }
/* Whether each channel by itself gives one of the result, side by side too. */
static bool is_by_channel(struct op_call *c, const struct conv *v) {
  return v->depthwise && !v->layout.channels_first && op_dim_value(c, v->multiplier) == 1;
}

/* ---- the taps of an output ---- */

#define CUT_SHARE 24 /* one tap of so many outside pays for sums of different lengths */

/* Whether sizes are known, and every output has taps inside. */
static bool every_output_meets(struct op_call *c, const struct window_axis *a) {
  int64_t in = op_dim_value(c, a->in), out = op_dim_value(c, a->out), size = op_dim_value(c, a->size), pad = op_dim_value(c, a->pad),
          step = op_dim_value(c, a->stride);
  return in > 0 && out > 0 && size > 0 && pad >= 0 && step > 0 && a->dilation == 1 && pad < size && (out - 1) * step - pad < in;
}
/* The taps outside of all outputs; 0 also where they are not known, or where an output has none inside. */
static int64_t taps_outside(struct op_call *c, const struct window_axis *a) {
  int64_t in = op_dim_value(c, a->in), out = op_dim_value(c, a->out), size = op_dim_value(c, a->size), outside = 0;
  for (int64_t o = 0; every_output_meets(c, a) && o < out; o++) {
    int64_t from = o * op_dim_value(c, a->stride) - op_dim_value(c, a->pad);
    outside += (from < 0 ? -from : 0) + (from + size > in ? from + size - in : 0);
  }
  return outside;
}
/* Columns stay: with their channels they are one run. A sum of few channels is shorter than what its bounds cost. */
void conv_cut_axes(struct op_call *c, struct conv *v) {
  if (!is_plain(v) || op_dim_value(c, v->in_channels) < CONV_NARROW)
    return;
  for (int i = 0; i + 1 < v->layout.spatial; i++)
    v->cut[i] = taps_outside(c, &v->axes[i]) * CUT_SHARE >= op_dim_value(c, v->axes[i].out) * op_dim_value(c, v->axes[i].size) &&
                taps_outside(c, &v->axes[i]) > 0;
}

expr_id conv_cut_loop(struct kb *kb, const struct conv *v, int i, expr_id o) {
  const struct window_axis *a = &v->axes[i];
  expr_id from = kb_sub(kb, kb_mul(kb, o, kb_dim(kb, a->stride)), kb_dim(kb, a->pad));
  expr_id low =
    op_dim_value(kb->c, a->pad) ? expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, kb_int(kb, 0), from), kb_int(kb, 0)) : kb_int(kb, 0);
  expr_id end = expr_binary(kb->k, SCALAR_MIN, kb_sub(kb, kb_dim(kb, a->in), from), kb_dim(kb, a->size));
  return kb_add(kb, kb_for(kb, LOOP_RED, kb_sub(kb, end, low)), low);
}

#define DIRECT_TAPS 8 /* columns of taps: each is code of its own */

bool conv_is_direct(struct op_call *c, struct conv *v) {
  int n = v->layout.spatial;
  int64_t in = op_dim_value(c, v->in_channels), out = op_dim_value(c, v->out_channels);
  if ((!is_plain(v) && !is_by_channel(c, v)) || v->dtype != v->sum || (v->dtype != DTYPE_FLOAT && v->dtype != DTYPE_DOUBLE))
    return false;
  for (int i = 0; i < n; i++)
    if (!every_output_meets(c, &v->axes[i]))
      return false;
  bool is_inside = window_stays_inside(c, &v->axes[n - 1]);
  if (in < CONV_NARROW || out < CONV_NARROW || (is_inside ? v->depthwise : op_dim_value(c, v->axes[n - 1].size) > DIRECT_TAPS))
    return false;
  for (int i = 0; i + 1 < n; i++)
    v->cut[i] = !window_stays_inside(c, &v->axes[i]);
  v->is_tested = !is_inside;
  return v->is_whole = true;
}

/* ---- the outputs of a tap ---- */

/* Whether the sizes are known, and each tap lies inside for some output. */
static bool every_tap_meets(struct op_call *c, const struct window_axis *a) {
  int64_t in = op_dim_value(c, a->in), out = op_dim_value(c, a->out), size = op_dim_value(c, a->size), pad = op_dim_value(c, a->pad),
          step = op_dim_value(c, a->stride);
  if (in < 1 || out < 1 || size < 1 || pad < 0 || step < 1)
    return false;
  for (int64_t tap = 0; tap < size; tap++) {
    int64_t from = pad - tap * a->dilation, low = from > 0 ? (from + step - 1) / step : 0;
    if (low >= out || low * step - from >= in)
      return false;
  }
  return true;
}
bool conv_cut_outputs(struct op_call *c, struct conv *v) {
  if (!is_plain(v) || v->dtype != v->sum || op_dim_value(c, v->in_channels) < CONV_NARROW)
    return false;
  for (int i = 0; i < v->layout.spatial; i++)
    if (!window_stays_inside(c, &v->axes[i]) && !every_tap_meets(c, &v->axes[i]))
      return false;
  for (int i = 0; i < v->layout.spatial; i++)
    v->cut[i] = !window_stays_inside(c, &v->axes[i]);
  v->is_whole = true;
  return true;
}

#define TESTED_TAPS 12 /* columns of taps: the sums of so many fit the registers of every CPU */

bool conv_test_taps(struct op_call *c, struct conv *v) {
  bool inside = true;
  if (!is_by_channel(c, v) || v->dtype != v->sum || v->dtype != DTYPE_FLOAT || op_dim_value(c, v->in_channels) < CONV_NARROW)
    return false;
  for (int i = 0; i < v->layout.spatial; i++) {
    if (!every_tap_meets(c, &v->axes[i]) || v->axes[i].dilation > 1 || op_dim_value(c, v->axes[i].size) > TESTED_TAPS)
      return false;
    inside = inside && window_stays_inside(c, &v->axes[i]);
  }
  return v->is_tested = v->is_whole = !inside;
}

/* From where 0 <= o * stride - pad + tap * dilation on, as long as that is less than the input's size. */
expr_id conv_output_loop(struct kb *kb, const struct conv *v, int i, expr_id tap) {
  const struct window_axis *a = &v->axes[i];
  int64_t step = op_dim_value(kb->c, a->stride), pad = op_dim_value(kb->c, a->pad), in = op_dim_value(kb->c, a->in);
  if (!v->cut[i])
    return kb_for_dim(kb, LOOP_RED, a->out);
  expr_id at = kb_mul(kb, tap, kb_int(kb, a->dilation));
  expr_id low = expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, kb_int(kb, pad + step - 1), at), kb_int(kb, 0));
  expr_id end = kb_div(kb, kb_sub(kb, kb_int(kb, in - 1 + pad + step), at), kb_int(kb, step));
  low = kb_div(kb, low, kb_int(kb, step));
  end = expr_binary(kb->k, SCALAR_MIN, end, kb_dim(kb, a->out));
  return kb_add(kb, kb_for(kb, LOOP_RED, kb_sub(kb, end, low)), low);
}
