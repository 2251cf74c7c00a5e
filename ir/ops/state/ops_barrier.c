/* ops_barrier.c: barriers. Like queues they live in the runtime; what is taken has the shapes that the barrier was made with. */
#include "ir/lower/host_call.h"

/* All components must have shapes without open sizes; one without a rank is a scalar, as TensorFlow's barriers read it. */
status build_barrier(struct op_call *c) {
  const struct attr_value *types = node_attr(c->node, "component_types"), *shapes = node_attr(c->node, "shapes");
  if (!shapes || shapes->list.count != types->list.count)
    return fail(INVALID_ARGUMENT, "All of the component shapes must be specified");
  for (uint32_t i = 0; i < shapes->list.count; i++) {
    const struct attr_shape *s = &shapes->list.items[i].shape;
    if (s->rank > LIMIT_RANK - 1)
      return fail(UNIMPLEMENTED, "a component of rank %d", s->rank);
    for (int d = 0; d < s->rank && !s->unknown_rank; d++)
      if (s->dims[d] < 0)
        return fail(INVALID_ARGUMENT, "the shape of component %u is not fully defined", i);
  }
  if (node_attr_int(c->node, "capacity", -1) != -1)
    return fail(INVALID_ARGUMENT, "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited "
                                  "capacity.");
  return build_host(c);
}

status build_barrier_insert(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  const struct flow_value *keys = op_value(c, n->inputs.items[1]), *values = op_value(c, n->inputs.items[2]);
  if (keys->rank != 1)
    return fail(INVALID_ARGUMENT, "Shape must be rank 1 but is rank %d: keys", keys->rank);
  if (values->rank < 1)
    return fail(INVALID_ARGUMENT, "Shape must be at least rank 1 but is rank 0: values");
  return op_equal_dims(c, keys->dims[0], values->dims[0], "keys and values");
}

/* Places, keys and components of as many tuples as asked for; fewer when small batches are allowed. */
status build_barrier_take(struct op_call *c) {
  struct flow_node *n;
  dim *count, dims[LIMIT_RANK];
  int counts;
  const struct attr_value *shapes = c->in[0].maker ? node_attr(c->in[0].maker, "shapes") : NULL;
  bool small = node_attr_int(c->node, "allow_small_batch", 0) != 0;
  if (node_attr_int(c->node, "timeout_ms", -1) != -1)
    return fail(INVALID_ARGUMENT, "Timeout not supported yet.");
  if (!shapes || shapes->list.count + 2 != c->out_count)
    return fail(INVALID_ARGUMENT, "%u values, but the barrier has %u components", c->out_count - 2, shapes ? shapes->list.count : 0);
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  if (op_value(c, c->in[1].value)->rank != 0)
    return fail(INVALID_ARGUMENT, "num_elements must be a scalar.");
  TRY(op_known_elements(c, c->in[1].value, &count, &counts));
  dims[0] = small || count[0] == NO_DIM || op_dim_value(c, count[0]) < 0 ? op_new_symbol(c) : count[0];
  op_host_output(c, n, 0, 1, dims);
  op_host_output(c, n, 1, 1, dims);
  for (uint32_t i = 0; i < shapes->list.count; i++) {
    const struct attr_shape *s = &shapes->list.items[i].shape;
    int rank = s->unknown_rank ? 0 : s->rank;
    for (int d = 0; d < rank; d++)
      dims[d + 1] = op_dim(c, s->dims[d]);
    op_host_output(c, n, i + 2, rank + 1, dims);
  }
  return OK;
}
