/* ops_window.c: local response normalisation: windows over neighbouring channels. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/window.h"

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
  r->bias = node_attr_float(c->node, "bias", 1);
  r->alpha = node_attr_float(c->node, "alpha", 1);
  r->beta = node_attr_float(c->node, "beta", 0.5);
  return r->radius < 0 || r->radius > WINDOW_MAX ? fail(INVALID_ARGUMENT, "depth_radius is out of bounds: %lld", (long long)r->radius) : OK;
}

/* Opens a loop over the neighbours of a channel; `at` is the neighbour, clamped, and `inside` whether it exists. */
static void neighbour_loop(struct kb *kb, const struct response *r, expr_id channel, expr_id *at, struct element *inside) {
  expr_id k = kb_for(kb, LOOP_RED, kb_int(kb, 2 * r->radius + 1));
  *at = kb_sub(kb, kb_add(kb, channel, k), kb_int(kb, r->radius));
  *inside = real_element(window_within(kb, *at, r->dims[3]));
  *at = kb_clamp(kb, *at, kb_dim(kb, r->dims[3]));
}

/* bias + alpha * sum of squares around a channel; index[3] is used as scratch. */
static struct element response_norm(struct kb *kb, const struct response *r, uint32_t buffer, const expr_id *index, expr_id channel) {
  expr_id at[4] = {index[0], index[1], index[2], 0};
  struct element inside;
  struct accumulator acc = acc_zero(kb, kb->f.dtype);
  neighbour_loop(kb, r, channel, &at[3], &inside);
  struct element e = load_as(kb, kb->f.dtype, buffer, at);
  acc_add(kb, &acc, f_select(&kb->f, inside, f_binary(&kb->f, SCALAR_MUL, e, e), f_const(&kb->f, 0)));
  kb_close(kb, 1);
  struct element scaled = f_binary(&kb->f, SCALAR_MUL, f_const(&kb->f, r->alpha), acc_get(kb, &acc));
  return f_binary(&kb->f, SCALAR_ADD, f_const(&kb->f, r->bias), scaled);
}

/* norm^-beta, of a norm above 0 */
static struct element response_power(struct kb *kb, const struct response *r, struct element norm) {
  struct element exponent = f_binary(&kb->f, SCALAR_MUL, f_unary(&kb->f, SCALAR_LOG, norm), f_const(&kb->f, -r->beta));
  return f_unary(&kb->f, SCALAR_EXP, exponent);
}

status build_lrn(struct op_call *c) {
  value_id v;
  struct response r;
  TRY(op_input(c, 0, &v));
  TRY(response_begin(c, v, &r));
  enum dtype dtype = op_value(c, v)->dtype;
  struct kb kb;
  kb_begin(&kb, c, sum_dtype(dtype));
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, dtype, 4, r.dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, r.dims, index);
  struct element norm = response_norm(&kb, &r, a, index, index[3]);
  struct element power = response_power(&kb, &r, norm);
  store_as(&kb, o, index, f_binary(&kb.f, SCALAR_MUL, load_as(&kb, kb.f.dtype, a, index), power));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* dx_i = dy_i * norm_i^-beta - 2 * alpha * beta * x_i * sum over neighbours j of dy_j * y_j / norm_j */
status build_lrn_grad(struct op_call *c) {
  value_id in[3];
  struct response r;
  for (uint32_t i = 0; i < 3; i++) {
    TRY(op_input(c, i, &in[i]));
    TRY(response_begin(c, in[i], &r));
    for (int axis = 0; axis < 4; axis++)
      TRY(
        op_equal_dims(c, r.dims[axis], op_value(c, in[0])->dims[axis], "input_grads, input_image and out_image must have the same shape"));
  }
  enum dtype dtype = op_value(c, in[0])->dtype;
  struct kb kb;
  kb_begin(&kb, c, sum_dtype(dtype));
  struct formula *f = &kb.f;
  uint32_t dy = kb_in(&kb, in[0]), x = kb_in(&kb, in[1]), y = kb_in(&kb, in[2]), o = kb_out(&kb, dtype, 4, r.dims);
  expr_id index[4], at[4];
  kb_loops(&kb, LOOP_PAR, 4, r.dims, index);
  struct element norm = response_norm(&kb, &r, x, index, index[3]), inside;
  struct accumulator acc = acc_zero(&kb, f->dtype);
  memcpy(at, index, sizeof at);
  neighbour_loop(&kb, &r, index[3], &at[3], &inside);
  struct element other = response_norm(&kb, &r, x, index, at[3]);
  struct element term = f_binary(f, SCALAR_MUL, load_as(&kb, f->dtype, dy, at), load_as(&kb, f->dtype, y, at));
  acc_add(&kb, &acc, f_select(f, inside, f_binary(f, SCALAR_DIV, term, other), f_const(f, 0)));
  kb_close(&kb, 1);
  struct element direct = f_binary(f, SCALAR_MUL, load_as(&kb, f->dtype, dy, index), response_power(&kb, &r, norm));
  struct element factor = f_binary(f, SCALAR_MUL, f_const(f, 2 * r.alpha * r.beta), load_as(&kb, f->dtype, x, index));
  store_as(&kb, o, index, f_binary(f, SCALAR_SUB, direct, f_binary(f, SCALAR_MUL, factor, acc_get(&kb, &acc))));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
