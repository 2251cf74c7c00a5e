/* ops_accumulator.c: conditional accumulators. Like queues they live in the runtime; what is taken has the shape that the
 * accumulator was made with. */
#include <string.h>

#include "ir/ops/host_call.h"
#include "ir/ops/put_shape.h"

/* AccumulatorApplyGradient has the gradient last, SparseAccumulatorApplyGradient its rows before the shape. */
static bool applies(const struct graph *g, const struct node *put, const struct put_search *search, int64_t i, uint32_t *input, bool *batched) {
  bool sparse = strcmp(put->op, "SparseAccumulatorApplyGradient") == 0;
  bool dense = strcmp(put->op, "AccumulatorApplyGradient") == 0 || strcmp(put->op, "ResourceAccumulatorApplyGradient") == 0;
  *input = sparse ? 3 : 2;
  *batched = false;
  return (sparse || dense) && i == 0 && *input < put->input_count && op_same_resource(g, put, search->user);
}

/* As the accumulator was made; without a shape, of what is applied only the rank counts. Rows may have more dimensions than the
 * accumulator says. */
static status gradient_shape(struct op_call *c, bool sparse, struct attr_shape *out) {
  const struct attr_value *shape = c->in[0].maker ? node_attr(c->in[0].maker, "shape") : NULL;
  bool has_shape = shape && shape->kind == ATTR_SHAPE && !shape->shape.unknown_rank;
  int64_t *sizes = ARENA_ARRAY(c->lw->arena, int64_t, LIMIT_RANK);
  *out = has_shape ? shape->shape : (struct attr_shape){.dims = sizes};
  if (has_shape && !sparse)
    return OK;
  int rank;
  status found = op_put_shape(c, &(struct put_search){applies, c->in[0].maker, "the accumulator"}, 0, &rank, sizes);
  if (has_shape && (found != OK || rank == out->rank))
    return OK;
  TRY(found);
  *out = (struct attr_shape){.rank = rank, .dims = sizes};
  for (int i = 0; i < out->rank; i++)
    sizes[i] = -1;
  return OK;
}

/* Waits until enough gradients have been applied. */
status build_accumulator_take(struct op_call *c) {
  struct flow_node *n;
  struct attr_shape shape;
  TRY(gradient_shape(c, false, &shape));
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  return op_host_output_shaped(c, n, 0, &shape);
}

/* Indices, rows, and the shape of the whole. */
status build_accumulator_take_sparse(struct op_call *c) {
  struct flow_node *n;
  struct attr_shape shape;
  TRY(gradient_shape(c, true, &shape));
  if (shape.rank < 1 || shape.rank > LIMIT_RANK)
    return fail(INVALID_ARGUMENT, "rows of a gradient of rank %d", shape.rank);
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  dim rows = op_new_symbol(c), rank = op_dim(c, shape.rank), dims[LIMIT_RANK];
  for (int i = 1; i < shape.rank; i++)
    dims[i] = shape.dims[i] < 0 ? op_new_symbol(c) : op_dim(c, shape.dims[i]);
  dims[0] = rows;
  op_host_output(c, n, 0, 1, &rows);
  op_host_output(c, n, 1, shape.rank, dims);
  op_host_output(c, n, 2, 1, &rank);
  return OK;
}
