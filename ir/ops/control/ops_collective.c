/* ops_collective.c: values that the members of a group exchange: tasks that each run the node, or nodes on several devices of one
 * step. The members meet at one task: where the node is placed, and for several nodes of a graph at the first of their tasks. */
#include <stdlib.h>
#include <string.h>

#include "ir/lower/lower_frame.h"
#include "ir/lower/host_call.h"
#include "ir/ops/op_rows.h"

/* The group of a node: an attribute, or in the newer ops a constant input. -1: not known. */
static int64_t group_key(const struct graph *g, const struct node *n) {
  const struct attr_value *attr = node_attr(n, "group_key");
  if (attr && attr->kind == ATTR_INT)
    return attr->i;
  uint32_t at = strstr(n->op, "Recv") ? 1 : 2;
  const struct node *from = at < n->input_count ? &g->nodes.items[n->inputs[at].node] : NULL;
  const struct attr_value *value = from && strcmp(from->op, "Const") == 0 ? node_attr(from, "value") : NULL;
  return value && value->kind == ATTR_TENSOR && value->tensor->dtype == DTYPE_INT32 && value->tensor->count == 1
         ? *(const int32_t *)value->tensor->data
         : -1;
}

/* Where the group of the node meets: the first of its members' tasks in this graph. */
static uint32_t meeting_task(const struct op_call *c) {
  const struct graph *g = op_frame(c)->graph;
  int64_t key = group_key(g, c->node);
  uint32_t first = c->node->task;
  for (uint32_t i = 0; i < g->nodes.count && first < TASK_SELF && key >= 0; i++) {
    const struct node *n = &g->nodes.items[i];
    if (strncmp(n->op, "Collective", 10) == 0 && n->task < first && group_key(g, n) == key)
      first = n->task;
  }
  return first;
}

/* Tasks in order, then their devices: "/job:j/replica:0/task:1/device:CPU:2". */
static int64_t member_number(const struct node *n) {
  const char *colon = n->assigned ? strrchr(n->assigned, ':') : NULL;
  int64_t device = colon ? strtoll(colon + 1, NULL, 10) : 0;
  return (n->task < TASK_SELF ? (int64_t)n->task << 20 : 0) + device;
}

static status output_shape(struct op_call *c, int *rank, dim *dims) {
  enum collective_shape said = OP_ROW(c, collective_row)->shape;
  if (said != COLLECTIVE_SAID) {
    struct flow_value x = *op_value(c, c->in[0].value);
    *rank = x.rank;
    memcpy(dims, x.dims, sizeof x.dims);
    if (said != COLLECTIVE_SAME && x.rank < 1)
      return fail(INVALID_ARGUMENT, "a scalar has no rows");
    if (said != COLLECTIVE_SAME)
      dims[0] = op_new_symbol(c);
    return OK;
  }
  uint32_t input = op_arg_index(c, "shape");
  const struct attr_shape *shape = node_attr_shape(c->node, "shape");
  if (input != UINT32_MAX) {
    dim *e;
    TRY(op_elements(c, c->in[input].value, &e, rank));
    if (*rank > LIMIT_RANK)
      return fail(UNIMPLEMENTED, "a value of rank %d", *rank);
    memcpy(dims, e, sizeof *dims * (size_t)*rank);
    return OK;
  }
  if (!shape || shape->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a value whose rank is not known while compiling");
  *rank = shape->rank;
  for (int d = 0; d < *rank; d++)
    dims[d] = shape->dims[d] < 0 ? op_new_symbol(c) : op_dim(c, shape->dims[d]);
  return OK;
}

status build_collective(struct op_call *c) {
  struct flow_node *n;
  int rank;
  dim dims[LIMIT_RANK];
  int64_t tokens = node_attr_int(c->node, "Nordering_token", 0);
  c->in_count -= tokens > 0 && tokens < c->in_count ? (uint32_t)tokens : 0; /* order is that of control edges */
  for (uint32_t i = 0; i < c->in_count; i++) {
    value_id v;
    TRY(op_input(c, i, &v));
    c->in[i] = (struct bound){.value = v};
  }
  TRY(output_shape(c, &rank, dims));
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  n->task = meeting_task(c);
  op_host_add_attr(c, n, "tfc_member", (struct attr_value){.kind = ATTR_INT, .i = member_number(c->node)});
  op_host_output(c, n, 0, rank, dims);
  return OK;
}
