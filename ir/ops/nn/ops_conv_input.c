/* ops_conv_input.c: the gradient of a convolution's input: each element gathers from the outputs that covered it.
 *
 * Of stride s the elements at a, a + s, a + 2 s ... of an axis are covered by every s-th tap only. Where sizes and padding are known,
 * each such phase is a nest of its own over its taps: a convolution of stride 1 over the gradient with zeros around it, without a test
 * inside the sum. Of more phases than nests are worth it, and of open sizes, it goes by columns (conv_columns.c), where windows are few.
 * Otherwise each tap asks whether an output lies where it points. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/nn/conv.h"

#define PHASES_MOST 9 /* nests, each of them code of its own */

/* Elements first, first + stride, ... of an axis: element i of them is the sum over j of tap first_tap + j * stride times output
 * i + offset - j * step. */
struct phase_axis {
  int64_t first, first_tap, taps, offset;
  dim count;
};
struct phased {
  const struct conv *v;
  int64_t strides[WINDOW_SPATIAL], steps[WINDOW_SPATIAL], before[WINDOW_SPATIAL];
};

static struct phase_axis phase_of(struct op_call *c, const struct phased *p, int axis, int64_t first) {
  struct dim_table *t = op_dims(c);
  const struct window_axis *a = &p->v->axes[axis];
  int64_t s = p->strides[axis], pad = op_dim_value(c, a->pad), size = op_dim_value(c, a->size);
  struct phase_axis out = {.first = first, .first_tap = (first + pad) % s};
  out.taps = size > out.first_tap ? (size - out.first_tap + s - 1) / s : 0;
  out.offset = (first + pad - out.first_tap) / s;
  out.count = s == 1 ? a->in : dim_floordiv(t, dim_max(t, dim_add(t, a->in, op_dim(c, s - 1 - first)), op_dim(c, 0)), op_dim(c, s));
  return out;
}

static bool find_phases(struct op_call *c, const struct conv *v, struct phased *p) {
  int64_t nests = 1;
  *p = (struct phased){.v = v};
  for (int i = 0; i < v->layout.spatial; i++) {
    const struct window_axis *a = &v->axes[i];
    int64_t size = op_dim_value(c, a->size), pad = op_dim_value(c, a->pad), s = op_dim_value(c, a->stride);
    if (size < 1 || pad < 0 || s < 1 || s > PHASES_MOST || (s > 1 && a->dilation > 1) || pad > (size - 1) * a->dilation)
      return false;
    p->strides[i] = s;
    p->steps[i] = a->dilation;
    nests *= s;
  }
  return nests <= PHASES_MOST;
}

/* The gradient with zeros wherever some phase asks beyond it. */
static status pad_gradient(struct op_call *c, struct phased *p, value_id *gradient) {
  struct dim_table *t = op_dims(c);
  struct flow_value g = *op_value(c, *gradient);
  dim before[LIMIT_RANK], to[LIMIT_RANK];
  bool inside = true;
  for (int d = 0; d < g.rank; d++) {
    before[d] = op_dim(c, 0);
    to[d] = g.dims[d];
  }
  for (int i = 0; i < p->v->layout.spatial; i++) {
    int d = layout_axis(&p->v->layout, i);
    dim reach = p->v->axes[i].out;
    for (int64_t first = 0; first < p->strides[i]; first++) {
      struct phase_axis a = phase_of(c, p, i, first);
      int64_t missing = (a.taps - 1) * p->steps[i] - a.offset;
      if (a.taps == 0)
        continue;
      p->before[i] = missing > p->before[i] ? missing : p->before[i];
      reach = dim_max(t, reach, dim_add(t, a.count, op_dim(c, a.offset)));
    }
    before[d] = op_dim(c, p->before[i]);
    to[d] = dim_add(t, reach, before[d]);
    inside = inside && dim_equal(t, to[d], g.dims[d]) == 1;
  }
  return inside ? OK : conv_pad(c, *gradient, before, to, gradient);
}

/* The filter's input channel and its last index, and the gradient's channel, for an input's channel and the term of the sum. */
static void link_channels(struct kb *kb, const struct conv *v, expr_id channel, expr_id term, expr_id *filter, expr_id *from) {
  filter[0] = channel;
  filter[1] = *from = term;
  if (v->depthwise)
    *from = kb_add(kb, kb_mul(kb, channel, kb_dim(kb, v->multiplier)), term);
  if (!v->grouped)
    return;
  expr_id group = kb_div(kb, channel, kb_dim(kb, v->group_in));
  filter[0] = kb_mod(kb, channel, kb_dim(kb, v->group_in));
  *from = filter[1] = kb_add(kb, term, kb_mul(kb, group, kb_dim(kb, v->group_out)));
}
static dim term_count(const struct conv *v) { return v->depthwise ? v->multiplier : v->group_out; }

/* One phase. Its taps come in the order of all taps: the sum has the same bits as where each is tested. */
static void emit_phase_nest(struct kb *kb, const struct phased *p, const struct phase_axis *axes, uint32_t w, uint32_t g, uint32_t y) {
  const struct conv *v = p->v;
  int rank = v->layout.rank, n = v->layout.spatial;
  dim dims[LIMIT_RANK];
  expr_id index[LIMIT_RANK], o[WINDOW_SPATIAL], fi[LIMIT_RANK], gi[LIMIT_RANK], from;
  bool covered = true;
  conv_data_dims(v, false, dims);
  for (int i = 0; i < n; i++) {
    dims[layout_axis(&v->layout, i)] = axes[i].count;
    covered = covered && axes[i].taps > 0;
  }
  kb_loops(kb, LOOP_PAR, rank, dims, index);
  struct accumulator acc = acc_zero(kb, v->sum);
  for (int i = 0; i < n && covered; i++) {
    expr_id j = kb_for(kb, LOOP_RED, kb_int(kb, axes[i].taps)), at = index[layout_axis(&v->layout, i)];
    fi[i] = kb_add(kb, kb_int(kb, axes[i].first_tap), kb_mul(kb, j, kb_int(kb, p->strides[i])));
    o[i] = kb_sub(kb, kb_add(kb, at, kb_int(kb, p->before[i] + axes[i].offset)), kb_mul(kb, j, kb_int(kb, p->steps[i])));
  }
  if (covered) {
    expr_id term = kb_for_dim(kb, LOOP_RED, term_count(v));
    link_channels(kb, v, index[layout_channel(&v->layout)], term, &fi[n], &from);
    conv_data_index(v, index[0], o, from, gi);
    acc_add(kb, &acc, f_binary(&kb->f, SCALAR_MUL, load_as(kb, v->sum, g, gi), load_as(kb, v->sum, w, fi)));
    kb_close(kb, n + 1);
  }
  for (int i = 0; i < n; i++) {
    expr_id *at = &index[layout_axis(&v->layout, i)];
    *at = kb_add(kb, kb_mul(kb, *at, kb_int(kb, p->strides[i])), kb_int(kb, axes[i].first));
  }
  store_as(kb, y, index, acc_get(kb, &acc));
  kb_close(kb, rank);
}

static status input_by_phases(struct op_call *c, struct phased *p, value_id filter, value_id gradient) {
  const struct conv *v = p->v;
  dim dims[LIMIT_RANK];
  int64_t nests = 1;
  struct kb kb;
  kb_begin(&kb, c, v->sum);
  conv_data_dims(v, false, dims);
  uint32_t w = kb_in(&kb, filter), g = kb_in(&kb, gradient), y = kb_out(&kb, v->dtype, v->layout.rank, dims);
  for (int i = 0; i < v->layout.spatial; i++)
    nests *= p->strides[i];
  for (int64_t nest = 0; nest < nests; nest++) {
    struct phase_axis axes[WINDOW_SPATIAL];
    int64_t rest = nest;
    for (int i = v->layout.spatial - 1; i >= 0; i--) {
      axes[i] = phase_of(c, p, i, rest % p->strides[i]);
      rest /= p->strides[i];
    }
    emit_phase_nest(&kb, p, axes, w, g, y);
  }
  op_set_output(c, 0, kb_value(&kb, y));
  return kb_finish_guarded(&kb);
}

static status input_by_tests(struct op_call *c, const struct conv *v, value_id filter, value_id gradient) {
  struct kb kb;
  kb_begin(&kb, c, v->sum);
  dim dims[LIMIT_RANK];
  int rank = v->layout.rank, n = v->layout.spatial;
  conv_data_dims(v, false, dims);
  uint32_t w = kb_in(&kb, filter), g = kb_in(&kb, gradient), y = kb_out(&kb, v->dtype, rank, dims);
  expr_id index[LIMIT_RANK], o[WINDOW_SPATIAL], fi[LIMIT_RANK], gi[LIMIT_RANK], from, exists = expr_int(kb.k, DTYPE_BOOL, 1);
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  struct accumulator acc = acc_zero(&kb, v->sum);
  for (int i = 0; i < n; i++)
    fi[i] = kb_for_dim(&kb, LOOP_RED, v->axes[i].size);
  expr_id term = kb_for_dim(&kb, LOOP_RED, term_count(v));
  for (int i = 0; i < n; i++) {
    expr_id here;
    o[i] = window_source(&kb, &v->axes[i], index[layout_axis(&v->layout, i)], fi[i], &here);
    exists = kb_and(&kb, exists, here);
    o[i] = kb_clamp(&kb, o[i], kb_dim(&kb, v->axes[i].out));
  }
  link_channels(&kb, v, index[layout_channel(&v->layout)], term, &fi[n], &from);
  conv_data_index(v, index[0], o, from, gi);
  struct element a = f_select(&kb.f, real_element(exists), load_as(&kb, v->sum, g, gi), f_const(&kb.f, 0));
  acc_add(&kb, &acc, f_binary(&kb.f, SCALAR_MUL, a, load_as(&kb, v->sum, w, fi)));
  kb_close(&kb, n + 1);
  store_as(&kb, y, index, acc_get(&kb, &acc));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, y));
  return kb_finish_guarded(&kb);
}

/* Of stride 1 the gradient is convolved with the turned filter. */
static status narrow_input(struct op_call *c, const struct conv *v, value_id filter, value_id gradient) {
  struct conv back = *v;
  value_id out;
  for (int i = 0; i < 2; i++)
    back.axes[i].out = v->axes[i].in;
  TRY(conv_narrow_forward(c, &back, gradient, filter, true, &out));
  op_set_output(c, 0, out);
  return OK;
}

/* ---- by a turned filter ---- */

#define TURNED_TERMS 32768 /* of a sum: of more, no copy of the filter that transposes it fits a thread's stack */

/* Of stride 1 the gradient of the input is a convolution of the result's with the turned filter, which is read where it lies. (Its sums
 * have the taps the other way round; what is spread keeps their order, so that known and open sizes give the same bits.) */
static bool find_turned(struct op_call *c, const struct conv *v, struct conv *back) {
  int64_t terms = v->depthwise ? 1 : op_dim_value(c, v->out_channels);
  if (v->is_spread)
    return false;
  *back = *v;
  back->in_channels = back->group_in = v->out_channels;
  back->out_channels = back->group_out = v->in_channels;
  for (int i = 0; i < v->layout.spatial; i++) {
    struct window_axis *a = &back->axes[i];
    int64_t size = op_dim_value(c, a->size), pad = op_dim_value(c, a->pad);
    if (op_dim_value(c, a->stride) != 1 || size < 1 || pad < 0 || pad >= size)
      return false;
    terms *= size;
    a->in = v->axes[i].out;
    a->out = v->axes[i].in;
    a->pad = op_dim(c, size - 1 - pad);
  }
  back->is_turned = true;
  return terms <= TURNED_TERMS && conv_is_direct(c, back);
}

status conv_backprop_input(struct op_call *c, const struct conv *v, value_id filter, value_id gradient) {
  struct phased p;
  struct conv back;
  if (find_turned(c, v, &back))
    return conv_forward(c, &back, gradient, filter);
  bool has_phases = find_phases(c, v, &p);
  if (conv_has_columns(c, v) && (!has_phases || conv_is_open(c, v)))
    return conv_input_by_columns(c, v, filter, gradient);
  if (!has_phases)
    return input_by_tests(c, v, filter, gradient);
  TRY(pad_gradient(c, &p, &gradient));
  return conv_is_narrow(c, v) && p.strides[0] == 1 ? narrow_input(c, v, filter, gradient) : input_by_phases(c, &p, filter, gradient);
}
