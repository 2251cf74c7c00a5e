/* ops_window.c: local response normalisation: windows over neighbouring channels. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/nn/conv.h"

/* ---- LRN: x / (bias + alpha * sum of squares of the neighbouring channels) ^ beta ---- */

struct response {
  int64_t radius;
  double bias, alpha, beta;
  dim dims[LIMIT_RANK];
};

static status response_begin(struct op_call *c, value_id v, struct response *r) {
  struct flow_value x = *op_value(c, v);
  if (x.rank != 4)
    return fail(INVALID_ARGUMENT, "in must be 4-dimensional: %s", op_shape_text(c, x.rank, x.dims));
  memcpy(r->dims, x.dims, sizeof r->dims);
  r->radius = node_attr_int(c->node, "depth_radius", 5);
  int64_t channels = op_dim_value(c, x.dims[3]);
  r->bias = node_attr_float(c->node, "bias", 1);
  r->alpha = node_attr_float(c->node, "alpha", 1);
  r->beta = node_attr_float(c->node, "beta", 0.5);
  if (r->radius < 0 || r->radius > WINDOW_MAX)
    return fail(INVALID_ARGUMENT, "depth_radius is out of bounds: %lld", (long long)r->radius);
  if (channels > 0 && r->radius >= channels) /* no channel has more neighbours */
    r->radius = channels - 1;
  return OK;
}

/* A value with zeros for the neighbours that the first and the last channels lack: sums over neighbours test for nothing. */
static status add_neighbours(struct op_call *c, const struct response *r, value_id v, value_id *out) {
  dim before[4] = {op_dim(c, 0), op_dim(c, 0), op_dim(c, 0), op_dim(c, r->radius)}, to[4];
  memcpy(to, r->dims, sizeof to);
  to[3] = dim_add(op_dims(c), to[3], op_dim(c, 2 * r->radius));
  return conv_pad(c, v, before, to, out);
}
/* The sum over the neighbours of index[3], in a buffer with zeros around, or of their squares. */
static struct element sum_neighbours(struct kb *kb, const struct response *r, uint32_t buffer, const expr_id *index, bool of_squares) {
  struct accumulator acc = acc_zero(kb, kb->f.dtype);
  expr_id k = kb_for(kb, LOOP_RED, kb_int(kb, 2 * r->radius + 1)), at[4] = {index[0], index[1], index[2], kb_add(kb, index[3], k)};
  struct element e = load_as(kb, kb->f.dtype, buffer, at);
  acc_add(kb, &acc, of_squares ? f_binary(&kb->f, SCALAR_MUL, e, e) : e);
  kb_close(kb, 1);
  return acc_get(kb, &acc);
}
/* bias + alpha * sum of squares around a channel */
static struct element response_norm(struct kb *kb, const struct response *r, uint32_t buffer, const expr_id *index) {
  struct element scaled = f_binary(&kb->f, SCALAR_MUL, f_const(&kb->f, r->alpha), sum_neighbours(kb, r, buffer, index, true));
  return f_binary(&kb->f, SCALAR_ADD, f_const(&kb->f, r->bias), scaled);
}

/* norm^-beta, of a norm above 0 */
static struct element response_power(struct kb *kb, const struct response *r, struct element norm) {
  struct element exponent = f_binary(&kb->f, SCALAR_MUL, f_unary(&kb->f, SCALAR_LOG, norm), f_const(&kb->f, -r->beta));
  return f_unary(&kb->f, SCALAR_EXP, exponent);
}

status build_lrn(struct op_call *c) {
  value_id v, around;
  struct response r;
  TRY(op_input(c, 0, &v));
  TRY(response_begin(c, v, &r));
  TRY(add_neighbours(c, &r, v, &around));
  enum dtype dtype = op_value(c, v)->dtype;
  struct kb kb;
  kb_begin(&kb, c, sum_dtype(dtype));
  uint32_t a = kb_in(&kb, v), wide = kb_in(&kb, around), o = kb_out(&kb, dtype, 4, r.dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, r.dims, index);
  struct element power = response_power(&kb, &r, response_norm(&kb, &r, wide, index));
  store_as(&kb, o, index, f_binary(&kb.f, SCALAR_MUL, load_as(&kb, kb.f.dtype, a, index), power));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* Of each element its norm, and dy * y / norm. */
static status norm_shares(struct op_call *c, const struct response *r, const value_id in[3], value_id *norms, value_id *shares) {
  value_id around;
  TRY(add_neighbours(c, r, in[1], &around));
  enum dtype dtype = sum_dtype(op_value(c, in[0])->dtype);
  struct kb kb;
  kb_begin(&kb, c, dtype);
  struct formula *f = &kb.f;
  uint32_t dy = kb_in(&kb, in[0]), y = kb_in(&kb, in[2]), x = kb_in(&kb, around);
  uint32_t norm = kb_out(&kb, dtype, 4, r->dims), share = kb_out(&kb, dtype, 4, r->dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, r->dims, index);
  struct element is = response_norm(&kb, r, x, index);
  store_as(&kb, norm, index, is);
  struct element both = f_binary(f, SCALAR_MUL, load_as(&kb, dtype, dy, index), load_as(&kb, dtype, y, index));
  store_as(&kb, share, index, f_binary(f, SCALAR_DIV, both, is));
  kb_close(&kb, 4);
  *norms = kb_value(&kb, norm);
  *shares = kb_value(&kb, share);
  return kb_finish(&kb);
}

/* dx_i = dy_i * norm_i^-beta - 2 * alpha * beta * x_i * sum over neighbours j of dy_j * y_j / norm_j */
status build_lrn_grad(struct op_call *c) {
  value_id in[3], norms, shares;
  struct response r;
  for (uint32_t i = 0; i < 3; i++) {
    TRY(op_input(c, i, &in[i]));
    TRY(response_begin(c, in[i], &r));
    for (int axis = 0; axis < 4; axis++)
      TRY(
        op_equal_dims(c, r.dims[axis], op_value(c, in[0])->dims[axis], "input_grads, input_image and out_image must have the same shape"));
  }
  TRY(norm_shares(c, &r, in, &norms, &shares));
  TRY(add_neighbours(c, &r, shares, &shares));
  enum dtype dtype = op_value(c, in[0])->dtype;
  struct kb kb;
  kb_begin(&kb, c, sum_dtype(dtype));
  struct formula *f = &kb.f;
  uint32_t dy = kb_in(&kb, in[0]), x = kb_in(&kb, in[1]), norm = kb_in(&kb, norms), around = kb_in(&kb, shares);
  uint32_t o = kb_out(&kb, dtype, 4, r.dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, r.dims, index);
  struct element sum = sum_neighbours(&kb, &r, around, index, false);
  struct element power = response_power(&kb, &r, load_as(&kb, f->dtype, norm, index));
  struct element direct = f_binary(f, SCALAR_MUL, load_as(&kb, f->dtype, dy, index), power);
  struct element factor = f_binary(f, SCALAR_MUL, f_const(f, 2 * r.alpha * r.beta), load_as(&kb, f->dtype, x, index));
  store_as(&kb, o, index, f_binary(f, SCALAR_SUB, direct, f_binary(f, SCALAR_MUL, factor, sum)));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
