/* ops_quantized_norm.c: normalisation of quantised images: with given statistics in fixed point, and of each image and channel. */
#include <string.h>

#include "ir/ops/quantized/quantized.h"

/* ---- QuantizedBatchNormWithGlobalNormalization: results from -END to END, ten bits of fraction ---- */

#define END (1 << 20)

enum { NORM_T, NORM_MEAN, NORM_VARIANCE, NORM_BETA, NORM_GAMMA, NORM_COUNT };
struct quantized_norm {
  value_id data[NORM_COUNT], min[NORM_COUNT], max[NORM_COUNT];
  struct flow_value x;
  enum dtype plain;
};

static status norm_inputs(struct op_call *c, struct quantized_norm *n) {
  for (uint32_t i = 0; i < NORM_COUNT; i++) {
    TRY(op_input(c, 3 * i, &n->data[i]));
    TRY(quantized_scalar(c, 3 * i + 1, false, &n->min[i]));
    TRY(quantized_scalar(c, 3 * i + 2, false, &n->max[i]));
    n->data[i] = quantized_in(c, n->data[i]);
    struct flow_value v = *op_value(c, n->data[i]);
    if (v.rank != (i == NORM_T ? 4 : 1))
      return fail(INVALID_ARGUMENT, "input must be 4-dimensional, mean, variance, beta and gamma 1-dimensional: %s",
                  op_shape_text(c, v.rank, v.dims));
    if (i == NORM_T)
      n->x = v;
    else
      TRY(op_equal_dims(c, v.dims[0], n->x.dims[3],
                        "Must provide as many means, variances, betas and gammas as the last dimension of the input"));
  }
  n->plain = n->x.dtype;
  return op_require_le(c, op_dim(c, 2), n->x.dims[3], "Must have at least a mean value");
}

static struct element channel_float(struct kb *kb, const struct quantized_norm *n, int which, expr_id channel) {
  struct quantized_range r = quantized_range(kb, n->min[which], n->max[which]);
  return quantized_to_float(kb, n->plain, kb_index(kb, kb_load(kb, kb_in(kb, n->data[which]), &channel)), r);
}

status build_quantized_global_norm(struct op_call *c) {
  struct quantized_norm n;
  TRY(norm_inputs(c, &n));
  bool scaled = node_attr_int(c->node, "scale_after_normalization", 0);
  struct kb kb;
  value_id range[2];
  kb_begin(&kb, c, DTYPE_FLOAT);
  TRY(quantized_range_out(&kb, e_num(&kb, -END), e_num(&kb, END), range));
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, n.data[NORM_T]), o = kb_out(&kb, DTYPE_INT32, 4, n.x.dims);
  struct element one = e_num(&kb, 1);
  struct quantized_range to = {e_num(&kb, -END), e_num(&kb, END)}, from = quantized_range(&kb, n.min[NORM_T], n.max[NORM_T]);
  expr_id index[4];
  index[3] = kb_for_dim(&kb, LOOP_PAR, n.x.dims[3]);
  struct element variance =
    e_add(&kb, channel_float(&kb, &n, NORM_VARIANCE, index[3]), e_num(&kb, node_attr_float(c->node, "variance_epsilon", 0)));
  struct element scale = e_div(&kb, one, f_unary(&kb.f, SCALAR_SQRT, variance));
  if (scaled)
    scale = e_mul(&kb, scale, channel_float(&kb, &n, NORM_GAMMA, index[3]));
  struct element mean = f_unary(&kb.f, SCALAR_NEG, channel_float(&kb, &n, NORM_MEAN, index[3]));
  struct element shift = e_add(&kb, e_mul(&kb, mean, scale), channel_float(&kb, &n, NORM_BETA, index[3]));
  expr_id factor = expr_cast(kb.k, DTYPE_INT32, quantized_of_float_clamped(&kb, DTYPE_INT32, scale, to));
  expr_id offset = expr_cast(kb.k, DTYPE_INT32, quantized_of_float_clamped(&kb, DTYPE_INT32, shift, to));
  expr_id unit = expr_cast(kb.k, DTYPE_INT32, quantized_of_float_clamped(&kb, DTYPE_INT32, one, to));
  factor = kb_now(&kb, factor);
  offset = kb_now(&kb, offset);
  kb_loops(&kb, LOOP_PAR, 3, n.x.dims, index);
  struct element x = quantized_to_float(&kb, n.plain, kb_index(&kb, kb_load(&kb, a, index)), from);
  expr_id q = expr_cast(kb.k, DTYPE_INT32, quantized_of_float_clamped(&kb, DTYPE_INT32, x, to));
  q = expr_binary(kb.k, SCALAR_DIV, kb_mul(&kb, q, factor), unit);
  kb_store(&kb, o, index, real_element(kb_add(&kb, q, offset)));
  kb_close(&kb, 4);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return OK;
}

/* ---- QuantizedInstanceNorm ---- */

struct instance_norm {
  value_id data, min, max, normed, range[2];
  struct flow_value x;
};

/* (x - mean) / sqrt(variance + epsilon) of each image and channel, as floats. */
static status instance_norm(struct op_call *c, struct instance_norm *n) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, n->data);
  struct quantized_range r = quantized_range(&kb, n->min, n->max);
  struct element step = e_div(&kb, e_sub(&kb, r.max, r.min), e_num(&kb, 255));
  uint32_t o = kb_out(&kb, DTYPE_FLOAT, 4, n->x.dims);
  expr_id index[4];
  index[0] = kb_for_dim(&kb, LOOP_PAR, n->x.dims[0]);
  index[3] = kb_for_dim(&kb, LOOP_PAR, n->x.dims[3]);
  struct element count = e_of(&kb, DTYPE_FLOAT, kb_dim(&kb, op_count(c, 2, &n->x.dims[1])));
  struct accumulator sum = acc_zero(&kb, DTYPE_FLOAT);
  kb_loops(&kb, LOOP_RED, 2, &n->x.dims[1], &index[1]);
  acc_add(&kb, &sum, load_as(&kb, DTYPE_FLOAT, a, index));
  kb_close(&kb, 2);
  struct element mean = e_now(&kb, e_div(&kb, acc_get(&kb, &sum), count));
  struct accumulator squares = acc_zero(&kb, DTYPE_FLOAT);
  kb_loops(&kb, LOOP_RED, 2, &n->x.dims[1], &index[1]);
  struct element away = e_mul(&kb, step, e_sub(&kb, load_as(&kb, DTYPE_FLOAT, a, index), mean));
  acc_add(&kb, &squares, e_mul(&kb, away, away));
  kb_close(&kb, 2);
  struct element variance =
    e_add(&kb, e_div(&kb, acc_get(&kb, &squares), count), e_num(&kb, node_attr_float(c->node, "variance_epsilon", 1e-5)));
  struct element inverse = e_now(&kb, e_div(&kb, e_num(&kb, 1), f_unary(&kb.f, SCALAR_SQRT, variance)));
  kb_loops(&kb, LOOP_PAR, 2, &n->x.dims[1], &index[1]);
  away = e_mul(&kb, step, e_sub(&kb, load_as(&kb, DTYPE_FLOAT, a, index), mean));
  kb_store(&kb, o, index, e_mul(&kb, away, inverse));
  kb_close(&kb, 4);
  n->normed = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* The range of the results: given, or theirs; its ends not closer than min_separation. */
static status normed_range(struct op_call *c, struct instance_norm *n) {
  bool given = node_attr_int(c->node, "output_range_given", 0);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = given ? 0 : kb_in(&kb, n->normed);
  struct element least = e_num(&kb, node_attr_float(c->node, "given_y_min", 0)),
                 most = e_num(&kb, node_attr_float(c->node, "given_y_max", 0));
  if (!given) {
    struct accumulator min = acc_begin(&kb, f_highest(&kb.f)), max = acc_begin(&kb, f_lowest(&kb.f));
    expr_id index[4];
    kb_loops(&kb, LOOP_RED, 4, n->x.dims, index);
    struct element e = kb_load(&kb, a, index);
    acc_set(&kb, &min, e_min(&kb, acc_get(&kb, &min), e));
    acc_set(&kb, &max, e_max(&kb, acc_get(&kb, &max), e));
    kb_close(&kb, 4);
    least = acc_get(&kb, &min);
    most = acc_get(&kb, &max);
  }
  struct element apart = e_num(&kb, node_attr_float(c->node, "min_separation", 1e-3));
  most = e_select(&kb, e_lt(&kb, e_sub(&kb, most, least), apart), e_add(&kb, least, apart), most);
  return quantized_range_out(&kb, least, most, n->range);
}

status build_quantized_instance_norm(struct op_call *c) {
  struct instance_norm n;
  TRY(op_input(c, 0, &n.data));
  TRY(quantized_scalar(c, 1, true, &n.min));
  TRY(quantized_scalar(c, 2, true, &n.max));
  if (node_attr_int(c->node, "output_range_given", 0) &&
      !(node_attr_float(c->node, "given_y_min", 0) < node_attr_float(c->node, "given_y_max", 0)))
    return fail(INVALID_ARGUMENT, "given_y_min must be less than given_y_max");
  n.data = quantized_in(c, n.data);
  n.x = *op_value(c, n.data);
  if (n.x.rank != 4)
    return fail(INVALID_ARGUMENT, "x must be 4-dimensional: %s", op_shape_text(c, n.x.rank, n.x.dims));
  struct kb guard, kb;
  guard_begin(&guard, c);
  struct quantized_range r = quantized_range(&guard, n.min, n.max);
  kb_check(&guard, e_lt(&guard, r.min, r.max), INVALID_ARGUMENT, "input_min must be less than input_max", NO_EXPR, NO_EXPR);
  TRY(guard_finish(&guard));
  TRY(instance_norm(c, &n));
  TRY(normed_range(c, &n));
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, n.normed);
  struct quantized_range to = quantized_range(&kb, n.range[0], n.range[1]);
  uint32_t o = kb_out(&kb, n.x.dtype, 4, n.x.dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, n.x.dims, index);
  kb_store(&kb, o, index, quantized_round(&kb, n.x.dtype, kb_load(&kb, a, index), to));
  kb_close(&kb, 4);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return OK;
}
