/* window.c: see window.h. SAME pads so that there are ceil(in / stride) outputs, the odd element of padding at the end. */
#include "ir/ops/window.h"

#include "ir/ops/arrange.h"

#include <string.h>

status layout_read(struct op_call *c, int rank, struct layout *out) {
  const char *format = node_attr_string(c->node, "data_format", rank == 5 ? "NDHWC" : "NHWC");
  *out = (struct layout){.rank = rank, .spatial = rank - 2};
  if (rank < 3 || rank > WINDOW_SPATIAL + 2)
    return fail(INVALID_ARGUMENT, "input must be 4- or 5-dimensional, not of rank %d", rank);
  if (strcmp(format, "NHWC") == 0 || strcmp(format, "NDHWC") == 0 || strcmp(format, "CHANNELS_LAST") == 0)
    return OK;
  out->channels_first = true;
  if (strcmp(format, "NCHW") == 0 || strcmp(format, "NCDHW") == 0 || strcmp(format, "CHANNELS_FIRST") == 0)
    return OK;
  return fail(UNIMPLEMENTED, "data format %s", format);
}

status window_padding(struct op_call *c, enum padding *out) {
  const char *text = node_attr_string(c->node, "padding", "VALID");
  *out = strcmp(text, "SAME") == 0 ? PADDING_SAME : strcmp(text, "EXPLICIT") == 0 ? PADDING_EXPLICIT : PADDING_VALID;
  return OK;
}

status window_explicit(const struct window_axis *a) {
  bool good = a->explicit_before >= 0 && a->explicit_after >= 0 && a->explicit_before <= WINDOW_MAX && a->explicit_after <= WINDOW_MAX;
  return good ? OK : fail(INVALID_ARGUMENT, "explicit_paddings are out of bounds");
}

status window_list(struct op_call *c, const char *attr, int rank, int64_t *out) {
  const struct attr_value *v = node_attr(c->node, attr);
  for (int i = 0; i < rank; i++)
    out[i] = 1;
  if (!v || v->list.count == 0)
    return OK;
  if (v->list.count != (uint32_t)rank)
    return fail(INVALID_ARGUMENT, "%s must have %d elements, has %u", attr, rank, v->list.count);
  for (int i = 0; i < rank; i++) {
    out[i] = v->list.items[i].i;
    if (out[i] < 1 || out[i] > WINDOW_MAX)
      return fail(INVALID_ARGUMENT, "%s must be positive, not %lld", attr, (long long)out[i]);
  }
  return OK;
}

status window_solve(struct op_call *c, enum padding padding, struct window_axis *a) {
  struct dim_table *t = op_dims(c);
  dim one = op_dim(c, 1), zero = op_dim(c, 0), stride = a->stride;
  dim extent = dim_add(t, dim_mul(t, dim_sub(t, a->size, one), op_dim(c, a->dilation)), one);
  if (padding == PADDING_SAME) {
    a->out = dim_floordiv(t, dim_sub(t, dim_add(t, a->in, stride), one), stride);
    dim needed = dim_add(t, dim_mul(t, dim_sub(t, a->out, one), stride), extent);
    dim total = op_dim_value(c, stride) == 1 ? dim_sub(t, extent, one) : dim_max(t, dim_sub(t, needed, a->in), zero);
    a->pad = dim_floordiv(t, total, op_dim(c, 2));
    return OK;
  }
  a->pad = op_dim(c, padding == PADDING_EXPLICIT ? a->explicit_before : 0);
  dim around = op_dim(c, padding == PADDING_EXPLICIT ? a->explicit_before + a->explicit_after : 0);
  dim room = dim_sub(t, dim_add(t, a->in, around), extent);
  /* A result of less than none; one that is just none is empty. */
  dim least = dim_sub(t, one, dim_mul(t, stride, op_dim(c, 2)));
  if (dim_less(t, room, least) == 1)
    return fail(INVALID_ARGUMENT, "Computed output size would be negative: input %s, window %s, stride %s", dim_text(t, a->in),
                dim_text(t, extent), dim_text(t, stride));
  if (dim_less(t, room, zero) != 0)
    TRY(op_require_le(c, least, room, "Computed output size would be negative: at least %d is missing, there is %d"));
  a->out = dim_floordiv(t, dim_add(t, room, stride), stride);
  if (dim_less(t, a->out, zero) != 0)
    a->out = dim_max(t, a->out, zero);
  return OK;
}

expr_id window_position(struct kb *kb, const struct window_axis *a, expr_id o, expr_id k) {
  expr_id at = kb_add(kb, kb_mul(kb, o, kb_dim(kb, a->stride)), kb_mul(kb, k, kb_int(kb, a->dilation)));
  return kb_sub(kb, at, kb_dim(kb, a->pad));
}

expr_id window_within(struct kb *kb, expr_id at, dim count) {
  return kb_and(kb, expr_binary(kb->k, SCALAR_LE, kb_int(kb, 0), at), kb_lt(kb, at, kb_dim(kb, count)));
}

bool window_stays_inside(struct op_call *c, const struct window_axis *a) {
  struct dim_table *t = op_dims(c);
  dim one = op_dim(c, 1), zero = op_dim(c, 0);
  if (dim_equal(t, a->pad, zero) != 1)
    return false;
  dim last = dim_mul(t, dim_sub(t, a->out, one), a->stride);
  last = dim_add(t, last, dim_mul(t, dim_sub(t, a->size, one), op_dim(c, a->dilation)));
  return dim_less(t, last, a->in) == 1;
}

expr_id window_source(struct kb *kb, const struct window_axis *a, expr_id i, expr_id k, expr_id *exists) {
  expr_id t = kb_sub(kb, kb_add(kb, i, kb_dim(kb, a->pad)), kb_mul(kb, k, kb_int(kb, a->dilation)));
  expr_id stride = kb_dim(kb, a->stride), o = kb_div(kb, t, stride);
  expr_id whole = expr_binary(kb->k, SCALAR_EQ, kb_mod(kb, t, stride), kb_int(kb, 0));
  *exists = kb_and(kb, whole, window_within(kb, o, a->out));
  return o;
}
