/* conv_pad.c: operands of convolutions with zeros around them, and views that join columns with channels: see conv.h.
 *
 * A window that may leave its input would ask at each tap whether it is inside. One copy with the zeros in it costs a load and a
 * store for each element, where a sum of k taps asks k times; what computes the input is fused into the copy, and runs once. */
#include <string.h>

#include "ir/ops/arrange.h"
#include "ir/ops/nn/conv.h"

/* The places that are outside first in axis d: the axes before it inside, those behind it whole. */
static void fill_border(struct kb *kb, uint32_t buffer, const struct flow_value *x, const dim *before, const dim *to, int d) {
  expr_id at[LIMIT_RANK];
  for (int i = 0; i < x->rank; i++) {
    dim extent = i < d ? x->dims[i] : i == d ? dim_sub(op_dims(kb->c), to[i], x->dims[i]) : to[i];
    expr_id loop = kb_for_dim(kb, LOOP_PAR, extent), inner = kb_dim(kb, before[i]);
    at[i] = i < d ? kb_add(kb, loop, inner) : loop;
    if (i != d || dim_equal(op_dims(kb->c), extent, before[i]) == 1)
      continue;
    at[i] = kb_add(kb, loop, kb_dim(kb, x->dims[i]));
    if (op_dim_value(kb->c, before[i]) != 0)
      at[i] = kb_select(kb, kb_lt(kb, loop, inner), loop, at[i]);
  }
  kb_store(kb, buffer, at, kb_zero(kb, x->dtype));
  kb_close(kb, x->rank);
}

static status pad(struct op_call *c, value_id v, const dim *before, const dim *to, value_id *out) {
  struct flow_value x = *op_value(c, v);
  expr_id at[LIMIT_RANK];
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), padded = kb_out(&kb, x.dtype, x.rank, to);
  for (int d = 0; d < x.rank; d++)
    if (dim_equal(op_dims(c), to[d], x.dims[d]) != 1)
      fill_border(&kb, padded, &x, before, to, d);
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  struct element value = kb_load(&kb, in, at);
  for (int d = 0; d < x.rank; d++)
    at[d] = kb_add(&kb, at[d], kb_dim(&kb, before[d]));
  kb_store(&kb, padded, at, value);
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, padded);
  return kb_finish_guarded(&kb);
}

/* Few elements of a last axis that gets none: rows of it and the one before it are copied as one. */
status conv_pad(struct op_call *c, value_id v, const dim *before, const dim *to, value_id *out) {
  struct dim_table *t = op_dims(c);
  struct flow_value x = *op_value(c, v);
  int last = x.rank - 1;
  int64_t few = op_dim_value(c, x.dims[last]);
  if (few < 1 || few >= CONV_NARROW || dim_equal(t, to[last], x.dims[last]) != 1)
    return pad(c, v, before, to, out);
  dim starts[LIMIT_RANK], sizes[LIMIT_RANK];
  memcpy(starts, before, sizeof *starts * (size_t)last);
  memcpy(sizes, to, sizeof *sizes * (size_t)last);
  starts[last - 1] = dim_mul(t, before[last - 1], x.dims[last]);
  sizes[last - 1] = dim_mul(t, to[last - 1], x.dims[last]);
  TRY(pad(c, conv_merge_axes(c, v, last - 1), starts, sizes, out));
  *out = op_alias(c, *out, x.dtype, x.rank, to);
  return OK;
}

#define PADDED_TAPS 40

/* A depthwise sum of few taps takes no longer than the copy would; narrow ones have no other form. */
static bool pays(struct op_call *c, const struct conv *v) {
  int64_t taps = 1;
  for (int i = 0; i < v->layout.spatial; i++)
    taps *= op_dim_value(c, v->axes[i].size) < 0 ? 1 : op_dim_value(c, v->axes[i].size);
  return !v->depthwise || taps >= PADDED_TAPS || conv_is_narrow(c, v);
}

status conv_pad_input(struct op_call *c, struct conv *v, value_id *input) {
  struct dim_table *t = op_dims(c);
  struct flow_value x = *op_value(c, *input);
  dim before[LIMIT_RANK], to[LIMIT_RANK], one = op_dim(c, 1);
  bool inside = true;
  v->is_whole = pays(c, v);
  if (!v->is_whole)
    return OK;
  for (int d = 0; d < x.rank; d++) {
    before[d] = op_dim(c, 0);
    to[d] = x.dims[d];
  }
  for (int i = 0; i < v->layout.spatial; i++) {
    struct window_axis *a = &v->axes[i];
    if (v->cut[i] || window_stays_inside(c, a))
      continue;
    int d = layout_axis(&v->layout, i);
    dim reach = dim_add(t, dim_mul(t, dim_sub(t, a->out, one), a->stride), one);
    reach = dim_add(t, reach, dim_mul(t, dim_sub(t, a->size, one), op_dim(c, a->dilation)));
    inside = false;
    before[d] = a->pad;
    to[d] = dim_max(t, dim_add(t, a->in, a->pad), reach);
    a->in = to[d];
    a->pad = op_dim(c, 0);
  }
  return inside ? OK : conv_pad(c, *input, before, to, input);
}

bool conv_columns_merge(struct op_call *c, const struct conv *v) {
  const struct window_axis *last = &v->axes[v->layout.spatial - 1];
  return !v->layout.channels_first && !v->grouped && !v->depthwise && last->dilation == 1 && op_dim_value(c, last->size) != 1;
}

value_id conv_merge_axes(struct op_call *c, value_id v, int axis) {
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[axis] = dim_mul(op_dims(c), x.dims[axis], x.dims[axis + 1]);
  for (int i = axis + 1; i + 1 < x.rank; i++)
    dims[i] = x.dims[i + 1];
  return op_alias(c, v, x.dtype, x.rank - 1, dims);
}
