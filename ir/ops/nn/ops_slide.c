/* ops_slide.c: windows that slide over the space of channels-last data and are no pools: morphological dilation with its gradients,
 * patches of images and volumes. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/window.h"

struct slide {
  int spatial;
  struct window_axis axes[WINDOW_SPATIAL];
  dim batch, depth;
};

/* An attribute that has 1 for batch and channels. */
static status space_list(struct op_call *c, const char *attr, int rank, int64_t *out) {
  TRY(window_list(c, attr, rank, out));
  return out[0] == 1 && out[rank - 1] == 1 ? OK : fail(UNIMPLEMENTED, "%s is only supported across spatial dimensions.", attr);
}

/* The windows' sizes are numbers, or the first dims of a filter. */
static status slide_begin(struct op_call *c, const struct flow_value *x, int spatial, const int64_t *sizes, const dim *filter,
                          struct slide *s) {
  enum padding padding;
  int rank = spatial + 2;
  int64_t strides[LIMIT_RANK], rates[LIMIT_RANK];
  if (x->rank != rank)
    return fail(INVALID_ARGUMENT, "input must be %d-dimensional: %s", rank, op_shape_text(c, x->rank, x->dims));
  TRY(window_padding(c, &padding));
  TRY(space_list(c, "strides", rank, strides));
  TRY(space_list(c, "rates", rank, rates));
  s->spatial = spatial;
  s->batch = x->dims[0];
  s->depth = x->dims[rank - 1];
  for (int i = 0; i < spatial; i++) {
    s->axes[i] = (struct window_axis){.in = x->dims[1 + i], .stride = op_dim(c, strides[1 + i]), .dilation = rates[1 + i]};
    s->axes[i].size = filter ? filter[i] : op_dim(c, sizes[1 + i]);
    TRY(window_solve(c, padding, &s->axes[i]));
  }
  return OK;
}

/* Fills the spatial places of `at`, clamped; the result says whether they were inside. */
static struct element slide_position(struct kb *kb, const struct slide *s, const expr_id *out, const expr_id *k, expr_id *at) {
  expr_id inside = expr_int(kb->k, DTYPE_BOOL, 1);
  for (int i = 0; i < s->spatial; i++) {
    at[1 + i] = window_position(kb, &s->axes[i], out[i], k[i]);
    inside = kb_and(kb, inside, window_within(kb, at[1 + i], s->axes[i].in));
    at[1 + i] = kb_clamp(kb, at[1 + i], kb_dim(kb, s->axes[i].in));
  }
  return real_element(inside);
}

/* ---- morphological dilation: the maximum over the window of input + filter ---- */

struct dilation {
  struct slide slide;
  value_id input, filter;
  enum dtype dtype;
  dim in[4], out[4], window[3];
};

static status dilation_begin(struct op_call *c, struct dilation *d) {
  TRY(op_input(c, 0, &d->input));
  TRY(op_input(c, 1, &d->filter));
  struct flow_value x = *op_value(c, d->input), w = *op_value(c, d->filter);
  if (w.rank != 3)
    return fail(INVALID_ARGUMENT, "filter must be 3-dimensional: %s", op_shape_text(c, w.rank, w.dims));
  TRY(slide_begin(c, &x, 2, NULL, w.dims, &d->slide));
  TRY(op_equal_dims(c, x.dims[3], w.dims[2], "input and filter must have the same depth"));
  d->dtype = x.dtype;
  memcpy(d->in, x.dims, sizeof d->in);
  memcpy(d->window, w.dims, sizeof d->window);
  d->out[0] = d->slide.batch, d->out[3] = d->slide.depth;
  for (int i = 0; i < 2; i++)
    d->out[1 + i] = d->slide.axes[i].out;
  return OK;
}

/* input + filter at window place k (k[2] is the channel); inside: of the input. */
static struct element raised(struct kb *kb, const struct dilation *d, const expr_id *index, const expr_id *k, expr_id *at,
                             struct element *inside) {
  uint32_t a = kb_in(kb, d->input), b = kb_in(kb, d->filter);
  at[0] = index[0];
  at[3] = index[3];
  *inside = slide_position(kb, &d->slide, &index[1], k, at);
  return f_binary(&kb->f, SCALAR_ADD, kb_load(kb, a, at), kb_load(kb, b, k));
}

status build_dilation2d(struct op_call *c) {
  struct dilation d;
  TRY(dilation_begin(c, &d));
  struct kb kb;
  kb_begin(&kb, c, d.dtype);
  kb_in(&kb, d.input);
  kb_in(&kb, d.filter);
  uint32_t o = kb_out(&kb, d.dtype, 4, d.out);
  expr_id index[4], k[3], at[4];
  kb_loops(&kb, LOOP_PAR, 4, d.out, index);
  struct element none = kb_limit(&kb, d.dtype, false), inside;
  struct accumulator acc = acc_begin(&kb, none);
  kb_loops(&kb, LOOP_RED, 2, d.window, k);
  k[2] = index[3];
  struct element e = raised(&kb, &d, index, k, at, &inside);
  inside.re = kb_and(&kb, inside.re, f_binary(&kb.f, SCALAR_LT, none, e).re); /* NaN and -inf do not count */
  acc_set(&kb, &acc, f_binary(&kb.f, SCALAR_MAX, acc_get(&kb, &acc), f_select(&kb.f, inside, e, none)));
  kb_close(&kb, 2);
  kb_store(&kb, o, index, acc_get(&kb, &acc));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* The window place of the first maximum. Where nothing is larger than the lowest number it is the window's first place. */
static void highest_place(struct kb *kb, const struct dilation *d, const expr_id *index, expr_id *place) {
  struct element inside;
  expr_id k[3], at[4];
  struct accumulator best = acc_begin(kb, kb_limit(kb, d->dtype, false));
  uint32_t where[2] = {kb_local(kb, kb_int(kb, 0)), kb_local(kb, kb_int(kb, 0))};
  kb_loops(kb, LOOP_SEQ, 2, d->window, k);
  k[2] = index[3];
  struct accumulator e = acc_begin(kb, raised(kb, d, index, k, at, &inside));
  kb_if(kb, kb_and(kb, inside.re, f_binary(&kb->f, SCALAR_LT, acc_get(kb, &best), acc_get(kb, &e)).re));
  acc_set(kb, &best, acc_get(kb, &e));
  for (int i = 0; i < 2; i++)
    kb_set(kb, where[i], k[i]);
  kb_close(kb, 3);
  for (int i = 0; i < 2; i++)
    place[i] = kb_get(kb, where[i]);
  place[2] = index[3];
}

static status dilation_gradient(struct op_call *c, struct dilation *d, value_id *gradient) {
  TRY(dilation_begin(c, d));
  TRY(op_input(c, 2, gradient));
  struct flow_value g = *op_value(c, *gradient);
  if (g.rank != 4)
    return fail(INVALID_ARGUMENT, "out_backprop must be 4-dimensional: %s", op_shape_text(c, g.rank, g.dims));
  for (int i = 0; i < 4; i++)
    TRY(op_equal_dims(c, g.dims[i], d->out[i], "out_backprop has incompatible size."));
  return OK;
}

/* Windows overlap: rows and columns of the result run in order. */
status build_dilation2d_backprop_input(struct op_call *c) {
  struct dilation d;
  value_id gradient;
  TRY(dilation_gradient(c, &d, &gradient));
  struct kb kb;
  kb_begin(&kb, c, d.dtype);
  uint32_t g = kb_in(&kb, gradient), o = kb_out(&kb, d.dtype, 4, d.in);
  kb_fill(&kb, o, 4, d.in, f_const(&kb.f, 0));
  expr_id index[4], place[3], at[4];
  for (int i = 0; i < 4; i++)
    index[i] = kb_for_dim(&kb, i == 1 || i == 2 ? LOOP_SEQ : LOOP_PAR, d.out[i]);
  highest_place(&kb, &d, index, place);
  slide_position(&kb, &d.slide, &index[1], place, at);
  at[0] = index[0];
  at[3] = index[3];
  kb_store(&kb, o, at, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, o, at), kb_load(&kb, g, index)));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

status build_dilation2d_backprop_filter(struct op_call *c) {
  struct dilation d;
  value_id gradient;
  TRY(dilation_gradient(c, &d, &gradient));
  struct kb kb;
  kb_begin(&kb, c, d.dtype);
  uint32_t g = kb_in(&kb, gradient), o = kb_out(&kb, d.dtype, 3, d.window);
  kb_fill(&kb, o, 3, d.window, f_const(&kb.f, 0));
  expr_id index[4], place[3];
  index[3] = kb_for_dim(&kb, LOOP_PAR, d.out[3]);
  kb_loops(&kb, LOOP_SEQ, 3, d.out, index);
  highest_place(&kb, &d, index, place);
  kb_store(&kb, o, place, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, o, place), kb_load(&kb, g, index)));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* ---- patches: the last axis of the result holds [window ..., channel] ---- */

/* Windows of volumes that do not reach as far as their stride leave out places on both sides (the odd one at the end), where others begin
 * at the first place. */
static void leave_out(struct op_call *c, struct window_axis *a) {
  struct dim_table *t = op_dims(c);
  dim one = op_dim(c, 1), reach = dim_mul(t, dim_sub(t, a->size, one), op_dim(c, a->dilation));
  dim last = dim_add(t, dim_mul(t, dim_sub(t, a->out, one), a->stride), reach), left = dim_sub(t, dim_sub(t, a->in, one), last);
  a->pad = dim_sub(t, a->pad, dim_floordiv(t, dim_max(t, left, op_dim(c, 0)), op_dim(c, 2)));
}
static status extract_patches(struct op_call *c, int spatial) {
  value_id v;
  struct slide s;
  int64_t sizes[LIMIT_RANK];
  TRY(op_input(c, 0, &v));
  TRY(space_list(c, "ksizes", spatial + 2, sizes));
  struct flow_value x = *op_value(c, v);
  enum padding padding;
  TRY(slide_begin(c, &x, spatial, sizes, NULL, &s));
  TRY(window_padding(c, &padding));
  for (int i = 0; i < spatial && spatial == 3 && padding == PADDING_SAME; i++)
    leave_out(c, &s.axes[i]);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  int rank = 2 + 2 * spatial;
  dim all[LIMIT_RANK];
  all[0] = s.batch;
  all[rank - 1] = s.depth;
  for (int i = 0; i < spatial; i++)
    all[1 + i] = s.axes[i].out, all[1 + spatial + i] = s.axes[i].size;
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, rank, all);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, all, index);
  at[0] = index[0];
  at[1 + spatial] = index[rank - 1];
  struct element inside = slide_position(&kb, &s, &index[1], &index[1 + spatial], at);
  kb_store(&kb, o, index, f_select(&kb.f, inside, kb_load(&kb, a, at), f_const(&kb.f, 0)));
  kb_close(&kb, rank);
  value_id patches = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  dim dims[LIMIT_RANK];
  memcpy(dims, all, sizeof dims);
  dims[1 + spatial] = op_count(c, spatial + 1, &all[1 + spatial]);
  op_set_output(c, 0, op_alias(c, patches, x.dtype, 2 + spatial, dims));
  return OK;
}
status build_extract_image_patches(struct op_call *c) { return extract_patches(c, 2); }
status build_extract_volume_patches(struct op_call *c) { return extract_patches(c, 3); }
