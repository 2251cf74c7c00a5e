/* ops_global_norm.c: batch normalisation with statistics that are given, as it was before FusedBatchNorm, and its gradient. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"

struct global_norm {
  dim dims[4];
  enum dtype dtype, sum;
  double epsilon;
  bool scaled;
  value_id x, mean, variance, gamma;
};

static status channel_vector(struct op_call *c, const struct global_norm *n, uint32_t input, const char *name, value_id *out) {
  TRY(op_input(c, input, out));
  struct flow_value v = *op_value(c, *out);
  if (v.rank != 1)
    return fail(INVALID_ARGUMENT, "%s must be 1-dimensional: %s", name, op_shape_text(c, v.rank, v.dims));
  return op_equal_dims(c, v.dims[0], n->dims[3], name);
}

static status global_norm_begin(struct op_call *c, uint32_t gamma, struct global_norm *n) {
  TRY(op_input(c, 0, &n->x));
  struct flow_value x = *op_value(c, n->x);
  if (x.rank != 4)
    return fail(INVALID_ARGUMENT, "input must be 4-dimensional: %s", op_shape_text(c, x.rank, x.dims));
  memcpy(n->dims, x.dims, sizeof n->dims);
  n->dtype = x.dtype;
  n->sum = sum_dtype(x.dtype);
  n->epsilon = node_attr_float(c->node, "variance_epsilon", 0);
  n->scaled = node_attr_int(c->node, "scale_after_normalization", 0);
  TRY(channel_vector(c, n, 1, "mean", &n->mean));
  TRY(channel_vector(c, n, 2, "var", &n->variance));
  return channel_vector(c, n, gamma, "gamma", &n->gamma);
}

static struct element mul(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_MUL, a, b); }

/* variance + epsilon, and one over its root */
static struct element shifted(struct kb *kb, const struct global_norm *n, const expr_id *ch) {
  return f_binary(&kb->f, SCALAR_ADD, kb_load(kb, kb_in(kb, n->variance), ch), f_const(&kb->f, n->epsilon));
}
static struct element inverse_root(struct kb *kb, struct element v) {
  return f_binary(&kb->f, SCALAR_DIV, f_const(&kb->f, 1), f_unary(&kb->f, SCALAR_SQRT, v));
}
static struct element scaled(struct kb *kb, const struct global_norm *n, struct element e, const expr_id *ch) {
  return n->scaled ? mul(kb, e, kb_load(kb, kb_in(kb, n->gamma), ch)) : e;
}
static struct element away_from_mean(struct kb *kb, const struct global_norm *n, const expr_id *index) {
  return f_binary(&kb->f, SCALAR_SUB, kb_load(kb, kb_in(kb, n->x), index), kb_load(kb, kb_in(kb, n->mean), &index[3]));
}

/* t, m, v, beta, gamma */
status build_global_norm(struct op_call *c) {
  struct global_norm n;
  value_id beta;
  TRY(global_norm_begin(c, 4, &n));
  TRY(channel_vector(c, &n, 3, "beta", &beta));
  struct kb kb;
  kb_begin(&kb, c, n.dtype);
  const value_id in[] = {n.x, n.mean, n.variance, n.gamma, beta};
  for (int i = 0; i < 5; i++)
    kb_in(&kb, in[i]);
  uint32_t o = kb_out(&kb, n.dtype, 4, n.dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, n.dims, index);
  struct element factor = scaled(&kb, &n, inverse_root(&kb, shifted(&kb, &n, &index[3])), &index[3]);
  struct element e = mul(&kb, away_from_mean(&kb, &n, index), factor);
  kb_store(&kb, o, index, f_binary(&kb.f, SCALAR_ADD, e, kb_load(&kb, kb_in(&kb, beta), &index[3])));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* dm, dv, db, dg: sums over all but the channels */
static status channel_gradients(struct op_call *c, const struct global_norm *n, value_id gradient) {
  struct kb kb;
  kb_begin(&kb, c, n->dtype);
  struct formula *f = &kb.f;
  const value_id in[] = {n->x, n->mean, n->variance, n->gamma, gradient};
  for (int i = 0; i < 5; i++)
    kb_in(&kb, in[i]);
  uint32_t out[4];
  for (int i = 0; i < 4; i++)
    out[i] = kb_out(&kb, n->dtype, 1, &n->dims[3]);
  expr_id index[4];
  index[3] = kb_for_dim(&kb, LOOP_PAR, n->dims[3]);
  struct accumulator sum = acc_zero(&kb, n->sum), product = acc_zero(&kb, n->sum);
  kb_loops(&kb, LOOP_RED, 3, n->dims, index);
  struct element g = kb_load(&kb, kb_in(&kb, gradient), index);
  acc_add(&kb, &sum, f_cast(f, n->sum, g));
  acc_add(&kb, &product, f_cast(f, n->sum, mul(&kb, g, away_from_mean(&kb, n, index))));
  kb_close(&kb, 3);
  struct element db = f_cast(f, n->dtype, acc_get(&kb, &sum)), moved = f_cast(f, n->dtype, acc_get(&kb, &product));
  struct element v = shifted(&kb, n, &index[3]), root = inverse_root(&kb, v);
  struct element slope = f_binary(f, SCALAR_DIV, mul(&kb, root, f_const(f, -0.5)), v);
  kb_store(&kb, out[0], &index[3], mul(&kb, f_unary(f, SCALAR_NEG, db), scaled(&kb, n, root, &index[3])));
  kb_store(&kb, out[1], &index[3], mul(&kb, moved, scaled(&kb, n, slope, &index[3])));
  kb_store(&kb, out[2], &index[3], db);
  kb_store(&kb, out[3], &index[3], n->scaled ? mul(&kb, moved, root) : f_const(f, 0));
  kb_close(&kb, 1);
  for (uint32_t i = 0; i < 4; i++)
    op_set_output(c, 1 + i, kb_value(&kb, out[i]));
  return kb_finish(&kb);
}

/* t, m, v, gamma, backprop; the mean and the variance are taken as given, not as made of t */
status build_global_norm_grad(struct op_call *c) {
  struct global_norm n;
  value_id gradient;
  TRY(global_norm_begin(c, 3, &n));
  TRY(op_input(c, 4, &gradient));
  struct flow_value g = *op_value(c, gradient);
  if (g.rank != 4)
    return fail(INVALID_ARGUMENT, "out_backprop must be 4-dimensional: %s", op_shape_text(c, g.rank, g.dims));
  for (int i = 0; i < 4; i++)
    TRY(op_equal_dims(c, g.dims[i], n.dims[i], "out_backprop"));
  struct kb kb;
  kb_begin(&kb, c, n.dtype);
  kb_in(&kb, n.variance);
  uint32_t a = kb_in(&kb, gradient), o = kb_out(&kb, n.dtype, 4, n.dims);
  expr_id index[4];
  if (n.scaled)
    kb_in(&kb, n.gamma);
  kb_loops(&kb, LOOP_PAR, 4, n.dims, index);
  struct element factor = scaled(&kb, &n, inverse_root(&kb, shifted(&kb, &n, &index[3])), &index[3]);
  kb_store(&kb, o, index, mul(&kb, kb_load(&kb, a, index), factor));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  TRY(kb_finish(&kb));
  return channel_gradients(c, &n, gradient);
}
