/* conv_depthwise.c: depthwise convolutions of fewer channels than a vector has lanes: see conv.h.
 *
 * A row of an image is one run of columns x channels, in which the tap kx of an element lies kx * channels behind it: lanes run along
 * the row, over a filter that is repeated for each of its columns. A filter's gradient is summed for each place of the row first, over
 * the columns then. */
#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/nn/conv.h"

bool conv_is_narrow(struct op_call *c, const struct conv *v) {
  int64_t channels = op_dim_value(c, v->in_channels);
  return v->depthwise && v->layout.spatial == 2 && !v->layout.channels_first && channels > 0 && channels < CONV_NARROW &&
         op_dim_value(c, v->multiplier) == 1 && op_dim_value(c, v->axes[1].stride) == 1;
}

/* Where in a row lies what the tap k is multiplied with, for the place `at`. */
static expr_id tap_place(struct kb *kb, const struct conv *v, expr_id at, expr_id k) {
  dim step = dim_mul(op_dims(kb->c), op_dim(kb->c, v->axes[1].dilation), v->in_channels);
  return kb_add(kb, at, kb_mul(kb, k, kb_dim(kb, step)));
}
static expr_id tap_row(struct kb *kb, const struct conv *v, expr_id row, expr_id k) {
  return kb_add(kb, kb_mul(kb, row, kb_dim(kb, v->axes[0].stride)), kb_mul(kb, k, kb_int(kb, v->axes[0].dilation)));
}

/* [kh, kw, columns * channels]: the taps of each place of a row of the result. */
static status repeat_filter(struct op_call *c, const struct conv *v, value_id filter, dim row, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, v->sum);
  dim dims[3] = {v->axes[0].size, v->axes[1].size, row};
  uint32_t w = kb_in(&kb, filter), y = kb_out(&kb, v->sum, 3, dims);
  expr_id index[3];
  kb_loops(&kb, LOOP_PAR, 3, dims, index);
  expr_id from[4] = {index[0], index[1], kb_mod(&kb, index[2], kb_dim(&kb, v->in_channels)), kb_int(&kb, 0)};
  store_as(&kb, y, index, load_as(&kb, v->sum, w, from));
  kb_close(&kb, 3);
  *out = kb_value(&kb, y);
  return kb_finish_guarded(&kb);
}

status conv_narrow_forward(struct op_call *c, const struct conv *v, value_id input, value_id filter, bool turned, value_id *out) {
  dim row = dim_mul(op_dims(c), v->axes[1].out, v->in_channels), dims[3] = {v->batch, v->axes[0].out, row};
  value_id taps, rows = conv_merge_axes(c, input, 2);
  TRY(repeat_filter(c, v, filter, row, &taps));
  struct kb kb;
  kb_begin(&kb, c, v->sum);
  uint32_t x = kb_in(&kb, rows), w = kb_in(&kb, taps), y = kb_out(&kb, v->dtype, 3, dims);
  expr_id index[3], k[2], at[2];
  kb_loops(&kb, LOOP_PAR, 3, dims, index);
  struct accumulator acc = acc_zero(&kb, v->sum);
  for (int i = 0; i < 2; i++) {
    k[i] = at[i] = kb_for_dim(&kb, LOOP_RED, v->axes[i].size);
    if (turned)
      at[i] = kb_sub(&kb, kb_sub(&kb, kb_dim(&kb, v->axes[i].size), kb_int(&kb, 1)), k[i]);
  }
  expr_id from[3] = {index[0], tap_row(&kb, v, index[1], at[0]), tap_place(&kb, v, index[2], at[1])}, tap[3] = {k[0], k[1], index[2]};
  acc_add(&kb, &acc, f_binary(&kb.f, SCALAR_MUL, load_as(&kb, v->sum, x, from), load_as(&kb, v->sum, w, tap)));
  kb_close(&kb, 2);
  store_as(&kb, y, index, acc_get(&kb, &acc));
  kb_close(&kb, 3);
  value_id result = kb_value(&kb, y);
  TRY(kb_finish_guarded(&kb));
  dim shape[4] = {v->batch, v->axes[0].out, v->axes[1].out, v->in_channels};
  *out = op_alias(c, result, v->dtype, 4, shape);
  return OK;
}

/* The sums over batch and rows for each place of a row. */
static status sum_rows(struct op_call *c, const struct conv *v, value_id input, value_id gradient, value_id *out) {
  dim row = dim_mul(op_dims(c), v->axes[1].out, v->in_channels), dims[3] = {v->axes[0].size, v->axes[1].size, row};
  value_id x_rows = conv_merge_axes(c, input, 2), g_rows = conv_merge_axes(c, gradient, 2);
  struct kb kb;
  kb_begin(&kb, c, v->sum);
  uint32_t x = kb_in(&kb, x_rows), g = kb_in(&kb, g_rows), y = kb_out(&kb, v->sum, 3, dims);
  expr_id index[3];
  kb_loops(&kb, LOOP_PAR, 3, dims, index);
  struct accumulator acc = acc_zero(&kb, v->sum);
  expr_id batch = kb_for_dim(&kb, LOOP_RED, v->batch), o = kb_for_dim(&kb, LOOP_RED, v->axes[0].out);
  expr_id from[3] = {batch, tap_row(&kb, v, o, index[0]), tap_place(&kb, v, index[2], index[1])}, gi[3] = {batch, o, index[2]};
  acc_add(&kb, &acc, f_binary(&kb.f, SCALAR_MUL, load_as(&kb, v->sum, x, from), load_as(&kb, v->sum, g, gi)));
  kb_close(&kb, 2);
  store_as(&kb, y, index, acc_get(&kb, &acc));
  kb_close(&kb, 3);
  *out = kb_value(&kb, y);
  return kb_finish_guarded(&kb);
}

status conv_narrow_filter(struct op_call *c, const struct conv *v, value_id input, value_id gradient, value_id *out) {
  value_id sums;
  TRY(sum_rows(c, v, input, gradient, &sums));
  dim parts[4] = {v->axes[0].size, v->axes[1].size, v->axes[1].out, v->in_channels};
  dim dims[4] = {v->axes[0].size, v->axes[1].size, v->in_channels, v->multiplier};
  sums = op_alias(c, sums, v->sum, 4, parts);
  struct kb kb;
  kb_begin(&kb, c, v->sum);
  uint32_t x = kb_in(&kb, sums), y = kb_out(&kb, v->dtype, 4, dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, dims, index);
  struct accumulator acc = acc_zero(&kb, v->sum);
  expr_id from[4] = {index[0], index[1], kb_for_dim(&kb, LOOP_RED, v->axes[1].out), index[2]};
  acc_add(&kb, &acc, load_as(&kb, v->sum, x, from));
  kb_close(&kb, 1);
  store_as(&kb, y, index, acc_get(&kb, &acc));
  kb_close(&kb, 4);
  *out = kb_value(&kb, y);
  return kb_finish_guarded(&kb);
}
