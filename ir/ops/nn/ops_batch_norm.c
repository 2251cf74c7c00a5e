/* ops_batch_norm.c: batch normalisation over all axes but the channels, and its gradient; and local response normalisation.
 * Statistics are kept in float. Two kernels: the statistics of each channel, then the elements. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/window.h"

struct norm {
  struct layout layout;
  int rank, channel;
  dim dims[LIMIT_RANK], channels;
  enum dtype dtype, stat; /* of the data; of the statistics */
  double epsilon, factor;
  bool training;
  dim rest; /* elements of one channel */
};

static status norm_begin(struct op_call *c, value_id x, enum dtype stat, struct norm *n) {
  struct flow_value v = *op_value(c, x);
  TRY(layout_read(c, v.rank, &n->layout));
  n->rank = v.rank;
  n->channel = layout_channel(&n->layout);
  memcpy(n->dims, v.dims, sizeof n->dims);
  n->channels = v.dims[n->channel];
  n->dtype = v.dtype;
  n->stat = stat;
  n->epsilon = node_attr_float(c->node, "epsilon", 0.0001);
  n->factor = node_attr_float(c->node, "exponential_avg_factor", 1);
  n->training = node_attr_int(c->node, "is_training", 1);
  n->rest = op_dim(c, 1);
  for (int i = 0; i < n->rank; i++)
    if (i != n->channel)
      n->rest = dim_mul(op_dims(c), n->rest, n->dims[i]);
  return OK;
}

/* Loops over all elements of channel `channel`. */
static void rest_loops(struct kb *kb, const struct norm *n, expr_id channel, expr_id *index) {
  for (int i = 0; i < n->rank; i++)
    index[i] = i == n->channel ? channel : kb_for_dim(kb, LOOP_RED, n->dims[i]);
}

static status check_channel_vector(struct op_call *c, const struct norm *n, value_id v, const char *name) {
  struct flow_value x = *op_value(c, v);
  if (x.rank != 1)
    return fail(INVALID_ARGUMENT, "%s must be 1-dimensional, not %s", name, op_shape_text(c, x.rank, x.dims));
  return op_equal_dims(c, x.dims[0], n->channels, arena_printf(op_arena(c), "%s must have as many elements as x has channels", name));
}

static struct element as_count(struct kb *kb, enum dtype dtype, expr_id n) { return real_element(expr_cast(kb->k, dtype, n)); }

/* Whether x is known to have elements; of an empty one the statistics are NaN. */
static bool has_elements(struct op_call *c, const struct norm *n) { return dim_less(op_dims(c), op_dim(c, 0), n->rest) == 1; }

/* Mean and variance of each channel; running: what the caller keeps (unbiased, averaged with the old ones). */
static status batch_statistics(struct op_call *c, const struct norm *n, value_id x, const value_id old[2], value_id mean[2],
                               value_id variance[2]) {
  struct kb kb;
  kb_begin(&kb, c, n->stat);
  struct formula *f = &kb.f;
  uint32_t a = kb_in(&kb, x), out[4], before[2] = {0, 0};
  bool averaged = n->factor != 1;
  for (int i = 0; i < 2 && averaged; i++)
    before[i] = kb_in(&kb, old[i]);
  for (int i = 0; i < 4; i++)
    out[i] = kb_out(&kb, n->stat, 1, &n->channels);
  expr_id index[LIMIT_RANK], ch = kb_for_dim(&kb, LOOP_PAR, n->channels);
  expr_id one = kb_int(&kb, 1), count = expr_binary(kb.k, SCALAR_MAX, kb_dim(&kb, n->rest), one);
  expr_id less = expr_binary(kb.k, SCALAR_MAX, kb_sub(&kb, count, one), one);
  struct accumulator sum = acc_zero(&kb, n->stat);
  rest_loops(&kb, n, ch, index);
  acc_add(&kb, &sum, load_as(&kb, n->stat, a, index));
  kb_close(&kb, n->rank - 1);
  struct accumulator m = acc_begin(&kb, f_binary(f, SCALAR_DIV, acc_get(&kb, &sum), as_count(&kb, n->stat, count)));
  struct accumulator squares = acc_zero(&kb, n->stat);
  rest_loops(&kb, n, ch, index);
  struct element away = f_binary(f, SCALAR_SUB, load_as(&kb, n->stat, a, index), acc_get(&kb, &m));
  acc_add(&kb, &squares, f_binary(f, SCALAR_MUL, away, away));
  kb_close(&kb, n->rank - 1);
  struct element biased = f_binary(f, SCALAR_DIV, acc_get(&kb, &squares), as_count(&kb, n->stat, count));
  struct element kept[2] = {acc_get(&kb, &m), f_binary(f, SCALAR_DIV, acc_get(&kb, &squares), as_count(&kb, n->stat, less))};
  for (int i = 0; i < 2 && averaged; i++) {
    struct element previous = f_binary(f, SCALAR_MUL, f_const(f, 1 - n->factor), kb_load(&kb, before[i], &ch));
    kept[i] = f_binary(f, SCALAR_ADD, previous, f_binary(f, SCALAR_MUL, f_const(f, n->factor), kept[i]));
  }
  expr_id empty = expr_binary(kb.k, SCALAR_EQ, kb_dim(&kb, n->rest), kb_int(&kb, 0));
  for (int i = 0; i < 2 && !has_elements(c, n); i++)
    kept[i] = f_select(f, real_element(empty), f_nan(f), kept[i]);
  kb_store(&kb, out[0], &ch, acc_get(&kb, &m));
  kb_store(&kb, out[1], &ch, biased);
  kb_store(&kb, out[2], &ch, kept[0]);
  kb_store(&kb, out[3], &ch, kept[1]);
  kb_close(&kb, 1);
  mean[0] = kb_value(&kb, out[0]), variance[0] = kb_value(&kb, out[1]);
  mean[1] = kb_value(&kb, out[2]), variance[1] = kb_value(&kb, out[3]);
  return kb_finish(&kb);
}

static struct element inverse_deviation(struct kb *kb, const struct norm *n, struct element variance) {
  struct element root = f_unary(&kb->f, SCALAR_SQRT, f_binary(&kb->f, SCALAR_ADD, variance, f_const(&kb->f, n->epsilon)));
  return f_binary(&kb->f, SCALAR_DIV, f_const(&kb->f, 1), root);
}

/* y = (x - mean) * scale / sqrt(variance + epsilon) + offset */
static status normalize(struct op_call *c, const struct norm *n, value_id x, value_id scale, value_id offset, value_id mean,
                        value_id variance, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, n->stat);
  struct formula *f = &kb.f;
  uint32_t a = kb_in(&kb, x), s = kb_in(&kb, scale), t = kb_in(&kb, offset), m = kb_in(&kb, mean), v = kb_in(&kb, variance);
  uint32_t o = kb_out(&kb, n->dtype, n->rank, n->dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, n->rank, n->dims, index);
  expr_id *ch = &index[n->channel];
  struct element factor = f_binary(f, SCALAR_MUL, kb_load(&kb, s, ch), inverse_deviation(&kb, n, kb_load(&kb, v, ch)));
  struct element away = f_binary(f, SCALAR_SUB, load_as(&kb, n->stat, a, index), kb_load(&kb, m, ch));
  store_as(&kb, o, index, f_binary(f, SCALAR_ADD, f_binary(f, SCALAR_MUL, away, factor), kb_load(&kb, t, ch)));
  kb_close(&kb, n->rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* What the third version gives for the libraries of other devices: here it is empty. */
static value_id dummy_reserve(struct op_call *c, enum dtype dtype) {
  dim none = op_dim(c, 0);
  return op_constant(c, dtype, 1, &none, "");
}

/* The given statistics as an output: NaN when x is empty. */
static status given_statistics(struct op_call *c, const struct norm *n, value_id v, value_id *out) {
  *out = v;
  if (has_elements(c, n))
    return OK;
  struct kb kb;
  kb_begin(&kb, c, n->stat);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, n->stat, 1, &n->channels);
  expr_id ch = kb_for_dim(&kb, LOOP_PAR, n->channels), empty = expr_binary(kb.k, SCALAR_EQ, kb_dim(&kb, n->rest), kb_int(&kb, 0));
  kb_store(&kb, o, &ch, f_select(&kb.f, real_element(empty), f_nan(&kb.f), kb_load(&kb, a, &ch)));
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

status build_fused_batch_norm(struct op_call *c) {
  value_id in[5];
  struct norm n;
  for (uint32_t i = 0; i < 5; i++)
    TRY(op_input(c, i, &in[i]));
  TRY(norm_begin(c, in[0], op_value(c, in[1])->dtype, &n));
  TRY(check_channel_vector(c, &n, in[1], "scale"));
  TRY(check_channel_vector(c, &n, in[2], "offset"));
  if (!n.training || n.factor != 1) {
    TRY(check_channel_vector(c, &n, in[3], "mean"));
    TRY(check_channel_vector(c, &n, in[4], "variance"));
  }
  value_id mean[2] = {in[3], in[3]}, variance[2] = {in[4], in[4]}, y;
  if (n.training)
    TRY(batch_statistics(c, &n, in[0], &in[3], mean, variance));
  TRY(n.training ? OK : given_statistics(c, &n, in[3], &mean[1]));
  TRY(n.training ? OK : given_statistics(c, &n, in[4], &variance[1]));
  TRY(normalize(c, &n, in[0], in[1], in[2], mean[0], variance[0], &y));
  op_set_output(c, 0, y);
  op_set_output(c, 1, mean[1]);
  op_set_output(c, 2, variance[1]);
  op_set_output(c, 3, mean[0]);
  op_set_output(c, 4, variance[0]);
  if (c->out_count > 5)
    op_set_output(c, 5, dummy_reserve(c, op_output_dtype(c, 5)));
  return OK;
}

/* ---- gradient ---- */

struct norm_grad {
  value_id gradient, x, scale, mean, variance;
  value_id gradient_mean, product_mean; /* of each channel: means of dy and of dy * (x - mean) */
  value_id scale_grad, offset_grad;
};

static status gradient_sums(struct op_call *c, const struct norm *n, struct norm_grad *g) {
  struct kb kb;
  kb_begin(&kb, c, n->stat);
  struct formula *f = &kb.f;
  uint32_t dy = kb_in(&kb, g->gradient), a = kb_in(&kb, g->x), m = kb_in(&kb, g->mean), v = kb_in(&kb, g->variance), out[4];
  for (int i = 0; i < 4; i++)
    out[i] = kb_out(&kb, n->stat, 1, &n->channels);
  expr_id index[LIMIT_RANK], ch = kb_for_dim(&kb, LOOP_PAR, n->channels);
  struct accumulator sum = acc_zero(&kb, n->stat), product = acc_zero(&kb, n->stat);
  rest_loops(&kb, n, ch, index);
  struct element e = load_as(&kb, n->stat, dy, index);
  struct element away = f_binary(f, SCALAR_SUB, load_as(&kb, n->stat, a, index), kb_load(&kb, m, &ch));
  acc_add(&kb, &sum, e);
  acc_add(&kb, &product, f_binary(f, SCALAR_MUL, e, away));
  kb_close(&kb, n->rank - 1);
  struct element count = as_count(&kb, n->stat, kb_dim(&kb, n->rest));
  kb_store(&kb, out[0], &ch, f_binary(f, SCALAR_DIV, acc_get(&kb, &sum), count));
  kb_store(&kb, out[1], &ch, f_binary(f, SCALAR_DIV, acc_get(&kb, &product), count));
  struct element inverse = inverse_deviation(&kb, n, kb_load(&kb, v, &ch));
  kb_store(&kb, out[2], &ch, f_binary(f, SCALAR_MUL, acc_get(&kb, &product), inverse));
  kb_store(&kb, out[3], &ch, acc_get(&kb, &sum));
  kb_close(&kb, 1);
  g->gradient_mean = kb_value(&kb, out[0]), g->product_mean = kb_value(&kb, out[1]);
  g->scale_grad = kb_value(&kb, out[2]), g->offset_grad = kb_value(&kb, out[3]);
  return kb_finish(&kb);
}

static status gradient_elements(struct op_call *c, const struct norm *n, const struct norm_grad *g, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, n->stat);
  struct formula *f = &kb.f;
  uint32_t dy = kb_in(&kb, g->gradient), s = kb_in(&kb, g->scale), v = kb_in(&kb, g->variance);
  uint32_t o;
  expr_id index[LIMIT_RANK];
  struct element d, inverse;
  if (!n->training) {
    o = kb_out(&kb, n->dtype, n->rank, n->dims);
    kb_loops(&kb, LOOP_PAR, n->rank, n->dims, index);
    d = load_as(&kb, n->stat, dy, index);
    inverse = inverse_deviation(&kb, n, kb_load(&kb, v, &index[n->channel]));
  } else {
    uint32_t a = kb_in(&kb, g->x), m = kb_in(&kb, g->mean), gm = kb_in(&kb, g->gradient_mean), pm = kb_in(&kb, g->product_mean);
    o = kb_out(&kb, n->dtype, n->rank, n->dims);
    kb_loops(&kb, LOOP_PAR, n->rank, n->dims, index);
    expr_id *ch = &index[n->channel];
    inverse = inverse_deviation(&kb, n, kb_load(&kb, v, ch));
    struct element away = f_binary(f, SCALAR_SUB, load_as(&kb, n->stat, a, index), kb_load(&kb, m, ch));
    struct element share = f_binary(f, SCALAR_MUL, kb_load(&kb, pm, ch), f_binary(f, SCALAR_MUL, inverse, inverse));
    d = f_binary(f, SCALAR_SUB, load_as(&kb, n->stat, dy, index), kb_load(&kb, gm, ch));
    d = f_binary(f, SCALAR_SUB, d, f_binary(f, SCALAR_MUL, away, share));
  }
  struct element factor = f_binary(f, SCALAR_MUL, kb_load(&kb, s, &index[n->channel]), inverse);
  store_as(&kb, o, index, f_binary(f, SCALAR_MUL, d, factor));
  kb_close(&kb, n->rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* y_backprop, x, scale, reserve_space_1 (mean), reserve_space_2 (variance) */
status build_fused_batch_norm_grad(struct op_call *c) {
  struct norm_grad g;
  struct norm n;
  TRY(op_input(c, 0, &g.gradient));
  TRY(op_input(c, 1, &g.x));
  TRY(op_input(c, 2, &g.scale));
  TRY(op_input(c, 3, &g.mean));
  TRY(op_input(c, 4, &g.variance));
  TRY(norm_begin(c, g.x, op_value(c, g.scale)->dtype, &n));
  TRY(check_channel_vector(c, &n, g.scale, "scale"));
  TRY(check_channel_vector(c, &n, g.mean, "reserve_space_1"));
  TRY(check_channel_vector(c, &n, g.variance, "reserve_space_2"));
  struct flow_value dy = *op_value(c, g.gradient);
  if (dy.rank != n.rank)
    return fail(INVALID_ARGUMENT, "x and y_backprop must have same shape, but x has shape %s and y_backprop has shape %s",
                op_shape_text(c, n.rank, n.dims), op_shape_text(c, dy.rank, dy.dims));
  for (int i = 0; i < n.rank; i++)
    TRY(op_equal_dims(c, dy.dims[i], n.dims[i], "x and y_backprop must have same shape"));
  value_id dx;
  TRY(gradient_sums(c, &n, &g));
  TRY(gradient_elements(c, &n, &g, &dx));
  op_set_output(c, 0, dx);
  op_set_output(c, 1, g.scale_grad);
  op_set_output(c, 2, g.offset_grad);
  for (uint32_t i = 3; i < c->out_count; i++)
    op_set_output(c, i, dummy_reserve(c, op_output_dtype(c, i)));
  return OK;
}
