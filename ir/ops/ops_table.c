/* ops_table.c: lookups: a result has the shape of the keys, then that of the table's values, which the node that made it says. */
#include "ir/op_rows.h"
#include "ir/ops/host_call.h"

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

status build_table_find(struct op_call *c) {
  struct flow_node *n;
  dim dims[LIMIT_RANK];
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  const struct flow_value *keys = op_value(c, n->inputs.items[1]);
  int rank = keys->rank;
  for (int d = 0; d < rank; d++)
    dims[d] = keys->dims[d];
  TRY(add_value_dims(c, dims, &rank));
  op_host_output(c, n, 0, rank, dims);
  return OK;
}

status build_table_export(struct op_call *c) {
  struct flow_node *n;
  dim dims[LIMIT_RANK] = {op_new_symbol(c)};
  int rank = 1;
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  op_host_output(c, n, 0, 1, dims);
  TRY(add_value_dims(c, dims, &rank));
  op_host_output(c, n, 1, rank, dims);
  return OK;
}
