/* ops_remapped.c: what TensorFlow's optimizer writes into a graph that is saved after it: products and convolutions with what follows
 * them (_FusedMatMul, _FusedConv2D ...), and chains of element-wise ops (_UnaryOpsComposition). Each is taken apart again; fusing is
 * done later. */
#include <math.h>
#include <string.h>

#include "ir/kernel/formula_words.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/arrange.h"
#include "ir/ops/part.h"

status build_matmul(struct op_call *c);
status build_conv2d(struct op_call *c);
status build_conv3d(struct op_call *c);
status build_depthwise_conv2d(struct op_call *c);
status build_bias_add(struct op_call *c);
status build_fused_batch_norm(struct op_call *c);

/* ---- what follows ---- */

static struct element formula_leaky(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return SELECT(GT(a, K(0)), a, MUL(a, b));
}
static struct element formula_gelu_exact(struct formula *f, struct element a, struct element b, struct element c) {
  (void)b, (void)c;
  return MUL(MUL(K(0.5), a), ADD(K(1), ERF(MUL(a, K(M_SQRT1_2)))));
}
static struct element formula_gelu(struct formula *f, struct element a, struct element b, struct element c) {
  (void)b, (void)c;
  struct element inner = MUL(K(0.79788456080286535588), ADD(a, MUL(K(0.044715), MUL(a, MUL(a, a)))));
  return MUL(MUL(K(0.5), a), ADD(K(1), TANH(inner)));
}
static struct element formula_add(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return ADD(a, b);
}

/* The formula of an op with one input. */
static map_formula unary_formula(const char *op) {
  const struct op_row *row = op_row_find(op);
  const struct map_row *map = row && row->build == build_map ? row->data : NULL;
  return map && map->inputs == 1 ? map->formula : NULL;
}

static status apply_activation(struct op_call *c, const char *op, value_id v, value_id *out) {
  enum dtype dtype = op_value(c, v)->dtype;
  if (strcmp(op, "LeakyRelu") == 0) {
    double *alpha = ARENA_ARRAY(op_arena(c), double, 1);
    alpha[0] = node_attr_float(c->node, "leakyrelu_alpha", 0.2);
    value_id in[2] = {v, op_constant(c, DTYPE_DOUBLE, 0, NULL, alpha)};
    TRY(op_cast(c, in[1], dtype, &in[1]));
    return op_map(c, in, 2, dtype, formula_leaky, out);
  }
  map_formula formula = strcmp(op, "GeluExact") == 0       ? formula_gelu_exact
                      : strcmp(op, "GeluApproximate") == 0 ? formula_gelu
                                                           : unary_formula(op);
  return formula ? op_map(c, &v, 1, dtype, formula, out) : fail(UNIMPLEMENTED, "fused with '%s'", op);
}

/* scale * (x - mean) / sqrt(variance + epsilon) + offset, along the last axis: on a CPU these are NHWC. */
static status apply_batch_norm(struct op_call *c, value_id v, const struct bound *args, value_id *out) {
  struct flow_value x = *op_value(c, v);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), parts[4], o = kb_out(&kb, x.dtype, x.rank, x.dims);
  for (int i = 0; i < 4; i++) {
    struct flow_value p = *op_value(c, args[i].value);
    if (p.rank != 1)
      return fail(INVALID_ARGUMENT, "scale, offset, mean and variance must be vectors: %s", op_shape_text(c, p.rank, p.dims));
    TRY(op_equal_dims(c, p.dims[0], x.dims[x.rank - 1], "one scale, offset, mean and variance for each channel"));
    parts[i] = kb_in(&kb, args[i].value);
  }
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  struct formula *f = &kb.f;
  struct element p[4];
  for (int i = 0; i < 4; i++)
    p[i] = kb_load(&kb, parts[i], &at[x.rank - 1]);
  struct element factor = MUL(p[0], DIV(K(1), SQRT(ADD(p[3], K(node_attr_float(c->node, "epsilon", 1e-4))))));
  kb_store(&kb, o, at, ADD(MUL(SUB(kb_load(&kb, in, at), p[2]), factor), p[1]));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* One of the ops that `fused_ops` names; `next`: the first further argument that none has taken. */
static status apply_fused(struct op_call *c, const char *op, uint32_t *next, value_id *v) {
  bool norm = strcmp(op, "FusedBatchNorm") == 0, bias = strcmp(op, "BiasAdd") == 0, add = strcmp(op, "Add") == 0;
  uint32_t takes = norm ? 4 : bias || add;
  struct bound args[4] = {0};
  if (*next + takes > c->in_count)
    return fail(INVALID_ARGUMENT, "has no arguments for '%s', which is fused", op);
  for (uint32_t i = 0; i < takes; i++)
    TRY(op_input(c, *next + i, &args[i].value));
  *next += takes;
  if (norm)
    return apply_batch_norm(c, *v, args, v);
  if (add)
    return op_map(c, (value_id[]){*v, args[0].value}, 2, op_value(c, *v)->dtype, formula_add, v);
  if (!bias)
    return apply_activation(c, op, *v, v);
  struct bound in[2] = {op_bound(*v), args[0]}, out;
  TRY(op_part(c, build_bias_add, 2, in, &out));
  *v = out.value;
  return OK;
}

static status build_followed(struct op_call *c, op_builder first) {
  const struct attr_value *ops = node_attr(c->node, "fused_ops");
  struct bound out;
  uint32_t next = 2;
  TRY(op_part(c, first, 2, c->in, &out));
  for (uint32_t i = 0; ops && i < ops->list.count; i++)
    TRY(apply_fused(c, ops->list.items[i].s.data, &next, &out.value));
  op_set_output(c, 0, out.value);
  return OK;
}

status build_fused_matmul(struct op_call *c) { return build_followed(c, build_matmul); }
status build_fused_conv2d(struct op_call *c) { return build_followed(c, build_conv2d); }
status build_fused_conv3d(struct op_call *c) { return build_followed(c, build_conv3d); }
status build_fused_depthwise_conv2d(struct op_call *c) { return build_followed(c, build_depthwise_conv2d); }

/* FusedBatchNormV3, then a side input is added, then an activation. */
status build_batch_norm_activated(struct op_call *c) {
  struct bound *out = ARENA_ARRAY(op_arena(c), struct bound, c->out_count);
  const char *activation = node_attr_string(c->node, "activation_mode", "Identity");
  TRY(op_part_outputs(c, build_fused_batch_norm, 5, c->in, c->out_count, out));
  value_id v = out[0].value;
  for (uint32_t i = 5; i < c->in_count; i++) {
    value_id in[2] = {v, NO_VALUE};
    TRY(op_input(c, i, &in[1]));
    TRY(op_map(c, in, 2, op_value(c, v)->dtype, formula_add, &v));
  }
  if (strcmp(activation, "Identity") != 0)
    TRY(apply_activation(c, activation, v, &v));
  memcpy(c->out, out, sizeof *out * c->out_count);
  op_set_output(c, 0, v);
  return OK;
}

status build_unary_composition(struct op_call *c) {
  const struct attr_value *ops = node_attr(c->node, "op_names");
  value_id v;
  TRY(op_input(c, 0, &v));
  for (uint32_t i = 0; ops && i < ops->list.count; i++) {
    map_formula formula = unary_formula(ops->list.items[i].s.data);
    if (!formula)
      return fail(UNIMPLEMENTED, "a composition with '%s'", ops->list.items[i].s.data);
    TRY(op_map(c, &v, 1, op_value(c, v)->dtype, formula, &v));
  }
  op_set_output(c, 0, v);
  return OK;
}
