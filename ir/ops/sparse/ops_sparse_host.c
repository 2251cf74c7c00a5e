/* ops_sparse_host.c: calls into the runtime that give sparse or ragged tensors: sets, counts, crosses. The number of entries
 * is known when they have run, the rank before. */

#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"
#include "ir/ops/sparse/sparse_host.h"

status op_sparse_outputs(struct op_call *c, struct flow_node *n, uint32_t first, dim rank) {
  dim dims[2] = {op_new_symbol(c), rank};
  op_host_output(c, n, first, 2, dims);
  op_host_output(c, n, first + 1, 1, dims);
  op_host_output(c, n, first + 2, 1, &dims[1]);
  return OK;
}

/* The rank that a shape input says: its length. */
static status rank_of_shape(struct op_call *c, uint32_t i, int *out) {
  value_id v;
  TRY(op_input(c, i, &v));
  const struct flow_value *x = op_value(c, v);
  int64_t rank;
  if (x->rank != 1)
    return fail(INVALID_ARGUMENT, "Shape must be a 1D tensor.");
  TRY(op_const_size(c, x->dims[0], "the rank of a sparse tensor", &rank));
  *out = (int)rank;
  return OK;
}

/* The rank of a dense input, or of the sparse tensor whose shape input `shape` is. */
static status rank_of_operand(struct op_call *c, bool dense, uint32_t input, int *out) {
  value_id v;
  if (!dense)
    return rank_of_shape(c, input, out);
  TRY(op_input(c, input, &v));
  *out = op_value(c, v)->rank;
  return OK;
}

status build_set_operation(struct op_call *c) {
  struct flow_node *n;
  int a, b;
  bool sparse = op_arg_index(c, "set1_shape") != UINT32_MAX, dense = op_arg_index(c, "set2_shape") == UINT32_MAX;
  TRY(rank_of_operand(c, !sparse, sparse ? op_arg_index(c, "set1_shape") : 0, &a));
  TRY(rank_of_operand(c, dense, dense ? 1 : op_arg_index(c, "set2_shape"), &b));
  if (a < 2 || b < 2)
    return fail(INVALID_ARGUMENT, "Shape has rank %d < 2", a < 2 ? a : b);
  if (a != b)
    return fail(INVALID_ARGUMENT, "Mismatched shapes: ranks %d and %d", a, b);
  TRY(op_host(c, HOST_PURE, NULL, &n));
  return op_sparse_outputs(c, n, 0, op_dim(c, a));
}

/* The shape less its last dimension. */
status build_set_size(struct op_call *c) {
  struct flow_node *n;
  value_id shape;
  int rank, count;
  dim *elements, dims[LIMIT_RANK];
  TRY(rank_of_shape(c, 2, &rank));
  if (rank < 2)
    return fail(INVALID_ARGUMENT, "Shape has rank %d < 2", rank);
  if (rank > LIMIT_RANK + 1)
    return fail(UNIMPLEMENTED, "a result of rank %d", rank - 1);
  TRY(op_host(c, HOST_PURE, NULL, &n));
  TRY(op_input(c, 2, &shape));
  TRY(op_known_elements(c, shape, &elements, &count));
  for (int d = 0; d < rank - 1; d++)
    dims[d] = elements[d] == NO_DIM ? op_new_symbol(c) : elements[d];
  op_host_output(c, n, 0, rank - 1, dims);
  return OK;
}

/* Counts of values: by rows, or of a vector. */
status build_count_sparse(struct op_call *c) {
  struct flow_node *n;
  int rank = 2;
  bool ragged = op_arg_index(c, "splits") != UINT32_MAX, sparse = op_arg_index(c, "dense_shape") != UINT32_MAX;
  if (!ragged)
    TRY(rank_of_operand(c, !sparse, sparse ? op_arg_index(c, "dense_shape") : 0, &rank));
  if (!sparse && !ragged && rank != 1 && rank != 2)
    return fail(INVALID_ARGUMENT, "Input must be a 1 or 2-dimensional tensor, not of rank %d", rank);
  if (rank == 0)
    return fail(INVALID_ARGUMENT, "The shape argument requires at least one element.");
  TRY(op_host(c, HOST_PURE, NULL, &n));
  return op_sparse_outputs(c, n, 0, op_dim(c, rank == 1 ? 1 : 2));
}

/* [n, 2] of the crosses of all rows */
status build_sparse_cross(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  return op_sparse_outputs(c, n, 0, op_dim(c, 2));
}

status build_ragged_cross(struct op_call *c) {
  struct flow_node *n;
  dim values = op_new_symbol(c), splits = op_new_symbol(c);
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 1, &values);
  op_host_output(c, n, 1, 1, &splits);
  return OK;
}

/* ---- sparse tensors that are boxed: how many dimensions they have is remembered with what boxed them ---- */

static void note_rank(struct op_call *c, int64_t rank) {
  if (rank < 0)
    return;
  struct object_shapes *o = lower_object(c->lw, c->node);
  o->count = 1;
  o->values = ARENA_NEW(op_arena(c), struct flow_value);
  o->values->rank = (int)rank;
}

/* Serialized, or kept in a map; those named Many row by row. */
status build_box_sparse(struct op_call *c) {
  struct flow_node *n;
  bool many = OP_ROW(c, sparse_box_row)->many, map = OP_ROW(c, sparse_box_row)->in_map;
  dim dims[2] = {op_dim(c, 3), op_dim(c, 3)}, *elements;
  int rank = 0, count;
  TRY(op_host(c, map ? HOST_CHANGES : HOST_PURE, NULL, &n));
  const struct flow_value *shape = op_value(c, n->inputs.items[2]);
  if (shape->rank != 1 || op_value(c, n->inputs.items[0])->rank != 2 || op_value(c, n->inputs.items[1])->rank != 1)
    return fail(INVALID_ARGUMENT, "Input indices should be a matrix, values and shape vectors");
  int64_t length = op_dim_value(c, shape->dims[0]);
  if (many) {
    bool known = op_known_elements(c, n->inputs.items[2], &elements, &count) == OK && count > 0 && elements[0] != NO_DIM;
    dims[rank++] = known ? elements[0] : op_new_symbol(c);
  }
  op_host_output(c, n, 0, rank + !map, dims);
  c->out[0].maker = c->node;
  note_rank(c, length - many);
  return OK;
}

/* Stacked in the shape in which the boxes lie. */
status build_unbox_sparse(struct op_call *c) {
  struct flow_node *n;
  bool map = OP_ROW(c, sparse_box_row)->in_map;
  TRY(op_host(c, map ? HOST_CHANGES : HOST_PURE, NULL, &n));
  const struct flow_value *boxes = op_value(c, n->inputs.items[0]);
  const struct object_shapes *o = lower_object(c->lw, c->in[0].maker);
  if (boxes->rank < 1)
    return fail(INVALID_ARGUMENT, "Serialized sparse should have non-zero rank []");
  int outer = map ? boxes->rank : boxes->rank - 1;
  return op_sparse_outputs(c, n, 0, o && o->count ? op_dim(c, outer + o->values->rank) : op_new_symbol(c));
}

/* For each of the top paths a sparse matrix: all indices, all values, all shapes; then what each path's probability is. */
status build_ctc_beam_search(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  struct flow_value x = *op_value(c, n->inputs.items[0]);
  if (x.rank != 3)
    return fail(INVALID_ARGUMENT, "inputs is not a 3-Tensor");
  uint32_t paths = (c->out_count - 1) / 3;
  dim *counts = ARENA_ARRAY(op_arena(c), dim, paths + 1), two = op_dim(c, 2);
  for (uint32_t p = 0; p < paths; p++) {
    counts[p] = op_new_symbol(c);
    op_host_output(c, n, p, 2, (dim[]){counts[p], two});
  }
  for (uint32_t p = 0; p < paths; p++)
    op_host_output(c, n, paths + p, 1, &counts[p]);
  for (uint32_t p = 0; p < paths; p++)
    op_host_output(c, n, 2 * paths + p, 1, &two);
  op_host_output(c, n, 3 * paths, 2, (dim[]){x.dims[1], op_dim(c, paths)});
  return OK;
}
