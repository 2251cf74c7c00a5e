/* ops_table.c: lookups: a result has the shape of the keys, then that of the table's values, which the node that made it says. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/lower/host_call.h"

static status add_value_dims(struct op_call *c, dim *dims, int *rank) {
  const struct node *maker = c->in[0].maker;
  const struct attr_value *shape = maker ? node_attr(maker, "value_shape") : NULL;
  if (!shape)
    return OK; /* scalars; a table that is none is noticed when the result is bound */
  if (shape->kind != ATTR_SHAPE || shape->shape.unknown_rank || *rank + shape->shape.rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a table whose values have no known rank");
  for (int d = 0; d < shape->shape.rank; d++)
    dims[(*rank)++] = shape->shape.dims[d] < 0 ? op_new_symbol(c) : op_dim(c, shape->shape.dims[d]);
  return OK;
}

/* A dense table's keys have the shape of its empty key: a scalar or a vector. */
status build_dense_table(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  const struct flow_value *empty = op_value(c, n->inputs.items[0]);
  if (empty->rank > 1)
    return fail(INVALID_ARGUMENT, "Empty key must be a scalar or a vector, got shape %s", op_shape_text(c, empty->rank, empty->dims));
  struct object_shapes *o = lower_object(c->lw, c->node);
  o->count = 1;
  o->values = ARENA_NEW(op_arena(c), struct flow_value);
  *o->values = *empty;
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
  return OK;
}

/* The empty key of a dense table, or NULL. */
static const struct flow_value *dense_key(struct op_call *c) {
  const struct node *maker = c->in[0].maker;
  return maker && strstr(maker->op, "MutableDenseHashTable") ? lower_object(c->lw, maker)->values : NULL;
}

status build_table_find(struct op_call *c) {
  struct flow_node *n;
  dim dims[LIMIT_RANK];
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  const struct flow_value *keys = op_value(c, n->inputs.items[1]);
  int rank = keys->rank - (dense_key(c) ? dense_key(c)->rank : 0);
  if (rank < 0)
    return fail(INVALID_ARGUMENT, "Input key shape %s must end with the table's key shape", op_shape_text(c, keys->rank, keys->dims));
  for (int d = 0; d < rank; d++)
    dims[d] = keys->dims[d];
  TRY(add_value_dims(c, dims, &rank));
  op_host_output(c, n, 0, rank, dims);
  return OK;
}

/* Keys, and values behind them. A dense table gives its buckets, which are matrices. */
status build_table_export(struct op_call *c) {
  struct flow_node *n;
  dim dims[LIMIT_RANK] = {op_new_symbol(c)};
  int rank = 1;
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  const struct flow_value *key = dense_key(c);
  if (key)
    dims[1] = op_count(c, key->rank, key->dims);
  op_host_output(c, n, 0, key ? 2 : 1, dims);
  TRY(add_value_dims(c, dims, &rank));
  if (key && rank == 1)
    dims[rank++] = op_dim(c, 1);
  op_host_output(c, n, 1, rank, dims);
  return OK;
}
