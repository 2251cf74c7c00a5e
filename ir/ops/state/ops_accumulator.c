/* ops_accumulator.c: conditional accumulators. Like queues they live in the runtime; what is taken has the shape that the
 * accumulator was made with. */
#include <string.h>

#include "ir/lower/host_call.h"
#include "ir/ops/put_shape.h"
#include "ir/ops/token_attrs.h"

/* AccumulatorApplyGradient has the gradient last, SparseAccumulatorApplyGradient its rows before the shape. */
static bool applies(const struct graph *g, const struct node *put, const struct put_search *search, int64_t i, uint32_t *input,
                    bool *batched) {
  bool sparse = strcmp(put->op, "SparseAccumulatorApplyGradient") == 0;
  bool dense = strcmp(put->op, "AccumulatorApplyGradient") == 0 || strcmp(put->op, "ResourceAccumulatorApplyGradient") == 0;
  *input = sparse ? 3 : 2;
  *batched = false;
  return (sparse || dense) && i == 0 && *input < put->input_count && op_same_resource(g, put, search->user);
}

/* The shape that the accumulator was made with; NULL: any. */
static const struct attr_shape *said_shape(const struct op_call *c) {
  const struct attr_value *shape = c->in[0].maker ? node_attr(c->in[0].maker, "shape") : NULL;
  return shape && shape->kind == ATTR_SHAPE && !shape->shape.unknown_rank ? &shape->shape : NULL;
}

/* The ranks of what is applied: where the accumulator does not say it. */
static rank_set applied_ranks(struct op_call *c) {
  int64_t sizes[LIMIT_RANK];
  return op_put_ranks(c, &(struct put_search){applies, c->in[0].maker}, 0, sizes);
}

/* Waits until enough gradients have been applied. */
status build_accumulator_take(struct op_call *c) {
  struct flow_node *n;
  const struct attr_shape *said = said_shape(c);
  rank_set ranks = said ? 0 : applied_ranks(c);
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  op_host_pass_attr(c, n, ATTR_GRADIENTS_EACH);
  return said ? op_host_output_shaped(c, n, 0, said) : op_host_output_ranked(c, n, 0, ranks, NULL);
}

/* Indices, rows, and the shape of the whole. Rows may have more dimensions than the accumulator says. */
status build_accumulator_take_sparse(struct op_call *c) {
  struct flow_node *n;
  int64_t sizes[LIMIT_RANK];
  const struct attr_shape *said = said_shape(c);
  rank_set any = ANY_RANK & ~ranks_of(0), ranks = applied_ranks(c) & ~ranks_of(0);
  if (said && ranks == any)
    ranks = said->rank >= 1 && said->rank <= LIMIT_RANK ? ranks_of(said->rank) : 0;
  if (!ranks)
    return fail(INVALID_ARGUMENT, "rows of a gradient of rank %d", said ? said->rank : 0);
  int lowest = ranks_lowest(ranks);
  for (int i = 0; i < LIMIT_RANK; i++)
    sizes[i] = said && i && i < said->rank && said->rank == lowest ? said->dims[i] : -1;
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  op_host_pass_attr(c, n, ATTR_GRADIENTS_EACH);
  dim rows = op_new_symbol(c), rank = ranks_are_many(ranks) ? op_new_symbol(c) : op_dim(c, lowest);
  op_host_output(c, n, 0, 1, &rows);
  TRY(op_host_output_ranked(c, n, 1, ranks, sizes));
  op_host_output(c, n, 2, 1, &rank);
  return OK;
}
