/* ops_collective.c: CollectiveReduce: the sum or mean of a value over the group's tasks. The tasks meet at the one where the
 * node is placed. */
#include "ir/ops/host_call.h"

status build_collective_reduce(struct op_call *c) {
  struct flow_node *n;
  value_id input;
  TRY(op_input(c, 0, &input));
  c->in[0] = (struct bound){.value = input};
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  n->blocks = true;
  struct flow_value x = *op_value(c, input);
  op_host_output(c, n, 0, x.rank, x.dims);
  return OK;
}
