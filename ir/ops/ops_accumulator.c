/* ops_accumulator.c: conditional accumulators. Like queues they live in the runtime; what is taken has the shape that the
 * accumulator was made with. */
#include "ir/ops/host_call.h"

/* The handle: a scalar whatever the op calls it. */
status build_accumulator(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
  return OK;
}

/* AccumulatorApplyGradient, SparseAccumulatorApplyGradient, AccumulatorSetGlobalStep: nothing comes back. */
status build_accumulator_change(struct op_call *c) {
  struct flow_node *n;
  return op_host(c, HOST_CHANGES, NULL, &n);
}

status build_accumulator_count(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  return OK;
}

static status gradient_shape(struct op_call *c, struct attr_shape *out) {
  const struct attr_value *shape = c->in[0].maker ? node_attr(c->in[0].maker, "shape") : NULL;
  if (!shape || shape->kind != ATTR_SHAPE || shape->shape.unknown_rank)
    return fail(UNIMPLEMENTED, "an accumulator without a shape: the rank of its gradient is not known");
  *out = shape->shape;
  return OK;
}

/* Waits until enough gradients have been applied. */
status build_accumulator_take(struct op_call *c) {
  struct flow_node *n;
  struct attr_shape shape;
  TRY(gradient_shape(c, &shape));
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  n->blocks = true;
  return op_host_output_shaped(c, n, 0, &shape);
}

/* Indices, rows, and the shape of the whole. */
status build_accumulator_take_sparse(struct op_call *c) {
  struct flow_node *n;
  struct attr_shape shape;
  TRY(gradient_shape(c, &shape));
  if (shape.rank < 1 || shape.rank > LIMIT_RANK)
    return fail(INVALID_ARGUMENT, "rows of a gradient of rank %d", shape.rank);
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  n->blocks = true;
  dim rows = op_new_symbol(c), rank = op_dim(c, shape.rank), dims[LIMIT_RANK];
  for (int i = 1; i < shape.rank; i++)
    dims[i] = shape.dims[i] < 0 ? op_new_symbol(c) : op_dim(c, shape.dims[i]);
  dims[0] = rows;
  op_host_output(c, n, 0, 1, &rows);
  op_host_output(c, n, 1, shape.rank, dims);
  op_host_output(c, n, 2, 1, &rank);
  return OK;
}
