/* conv_columns.c: the gradient of a convolution's input where strides are too many for phases: what each output gives to each place of its
 * window is a product of the gradient and the filter, and each element of the input takes what the few windows over it have for it. Such
 * strides leave few windows: one where none overlap (patches, and what makes images of them), four of filters twice as wide. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/nn/conv.h"

/* Over an element. What is between is about as many times as large as the input; of open sizes nobody knows how much that is. */
#define WINDOWS_MOST 9
#define WINDOWS_OPEN 4

static int64_t windows_over(struct op_call *c, const struct window_axis *a) {
  int64_t size = op_dim_value(c, a->size), stride = op_dim_value(c, a->stride);
  return size < 1 || stride < 1 || a->dilation > 1 ? -1 : (size - 1) / stride + 1;
}
bool conv_is_open(struct op_call *c, const struct conv *v) {
  bool is_open = false;
  for (int i = 0; i < v->layout.spatial; i++)
    is_open = is_open || op_dim_value(c, v->axes[i].in) < 0;
  return is_open;
}
bool conv_has_columns(struct op_call *c, const struct conv *v) {
  int64_t windows = 1, each, most = conv_is_open(c, v) ? WINDOWS_OPEN : WINDOWS_MOST;
  for (int i = 0; i < v->layout.spatial; i++) {
    if ((each = windows_over(c, &v->axes[i])) < 0 || (windows *= each) > most)
      return false;
  }
  return !v->depthwise && !v->grouped;
}

/* [batch, outputs of each axis, taps of each axis, channels] */
struct columns {
  const struct conv *v;
  int rank;
  dim dims[2 * WINDOW_SPATIAL + 2];
};
static struct columns columns_of(const struct conv *v) {
  int n = v->layout.spatial;
  struct columns out = {.v = v, .rank = 2 * n + 2};
  out.dims[0] = v->batch;
  for (int i = 0; i < n; i++) {
    out.dims[1 + i] = v->axes[i].out;
    out.dims[1 + n + i] = v->axes[i].size;
  }
  out.dims[1 + 2 * n] = v->in_channels;
  return out;
}

static status make_columns(struct op_call *c, const struct columns *p, value_id filter, value_id gradient, value_id *out) {
  const struct conv *v = p->v;
  int n = v->layout.spatial;
  struct kb kb;
  expr_id index[LIMIT_RANK], from[LIMIT_RANK], tap[LIMIT_RANK];
  kb_begin(&kb, c, v->sum);
  uint32_t w = kb_in(&kb, filter), g = kb_in(&kb, gradient), o = kb_out(&kb, v->sum, p->rank, p->dims);
  kb_loops(&kb, LOOP_PAR, p->rank, p->dims, index);
  struct accumulator sum = acc_zero(&kb, v->sum);
  expr_id term = kb_for_dim(&kb, LOOP_RED, v->out_channels);
  conv_data_index(v, index[0], index + 1, term, from);
  memcpy(tap, index + 1 + n, sizeof *tap * (size_t)(n + 1));
  tap[n + 1] = term;
  acc_add(&kb, &sum, f_binary(&kb.f, SCALAR_MUL, load_as(&kb, v->sum, g, from), load_as(&kb, v->sum, w, tap)));
  kb_close(&kb, 1);
  kb_store(&kb, o, index, acc_get(&kb, &sum));
  kb_close(&kb, p->rank);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* The windows along an axis that cover place i + pad: the first, and how many. */
static expr_id first_window(struct kb *kb, const struct window_axis *a, expr_id place, int64_t most, expr_id *count) {
  expr_id stride = kb_dim(kb, a->stride), one = kb_int(kb, 1), zero = kb_int(kb, 0);
  expr_id before = kb_div(kb, kb_sub(kb, place, kb_dim(kb, a->size)), stride);
  expr_id first = expr_binary(kb->k, SCALAR_MAX, kb_add(kb, before, one), zero);
  expr_id end = expr_binary(kb->k, SCALAR_MIN, kb_add(kb, kb_div(kb, place, stride), one), kb_dim(kb, a->out));
  *count = expr_binary(kb->k, SCALAR_MIN, expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, end, first), zero), kb_int(kb, most));
  return first;
}
status conv_input_by_columns(struct op_call *c, const struct conv *v, value_id filter, value_id gradient) {
  struct columns p = columns_of(v);
  value_id columns;
  TRY(make_columns(c, &p, filter, gradient, &columns));
  int n = v->layout.spatial;
  struct kb kb;
  dim dims[LIMIT_RANK];
  expr_id index[LIMIT_RANK], from[LIMIT_RANK], count;
  kb_begin(&kb, c, v->sum);
  conv_data_dims(v, false, dims);
  uint32_t a = kb_in(&kb, columns), o = kb_out(&kb, v->dtype, v->layout.rank, dims);
  kb_loops(&kb, LOOP_PAR, v->layout.rank, dims, index);
  struct accumulator sum = acc_zero(&kb, v->sum);
  from[0] = index[0];
  from[1 + 2 * n] = index[layout_channel(&v->layout)];
  for (int i = 0; i < n; i++) {
    expr_id place = kb_add(&kb, index[layout_axis(&v->layout, i)], kb_dim(&kb, v->axes[i].pad));
    expr_id first = first_window(&kb, &v->axes[i], place, windows_over(c, &v->axes[i]), &count);
    from[1 + i] = kb_add(&kb, first, kb_for(&kb, LOOP_RED, count));
    from[1 + n + i] = kb_sub(&kb, place, kb_mul(&kb, from[1 + i], kb_dim(&kb, v->axes[i].stride)));
  }
  acc_add(&kb, &sum, kb_load(&kb, a, from));
  kb_close(&kb, n);
  store_as(&kb, o, index, acc_get(&kb, &sum));
  kb_close(&kb, v->layout.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
