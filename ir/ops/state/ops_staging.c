/* ops_staging.c: staging areas. An area has no handle: its ops find it by name, and what comes out has the shapes of what the
 * graph puts in anywhere, in this entry or another. */
#include <string.h>

#include "ir/lower/lower.h"
#include "ir/ops/op_rows.h"
#include "ir/lower/host_call.h"
#include "ir/ops/put_shape.h"

/* Whether two ops of staging areas mean the same one. */
static bool same_area(const struct node *a, const struct node *b) {
  const char *x = node_attr_string(a, "shared_name", ""), *y = node_attr_string(b, "shared_name", "");
  return strcmp(node_attr_string(a, "container", ""), node_attr_string(b, "container", "")) == 0 &&
         strcmp(*x ? x : a->name, *y ? y : b->name) == 0;
}

/* "OrderedMapUnstage" puts through "OrderedMapStage". */
static bool puts_into(const struct node *put, const struct node *user) {
  size_t prefix = strncmp(user->op, "OrderedMap", 10) == 0 ? 10 : strncmp(user->op, "Map", 3) == 0 ? 3 : 0;
  return strncmp(put->op, user->op, prefix) == 0 && strcmp(put->op + prefix, "Stage") == 0 && same_area(put, user);
}

/* The input of `put` that is component i; -1: none, or nobody knows. */
static int component_input(const struct graph *g, const struct node *put, int64_t i) {
  if (put->op[0] == 'S')
    return i < put->input_count ? (int)i : -1;
  const struct node *indices = &g->nodes.items[put->inputs[1].node];
  const struct attr_value *a = node_attr(indices, "value");
  if (strcmp(indices->op, "Const") != 0 || !a || a->kind != ATTR_TENSOR || a->tensor->dtype != DTYPE_INT32)
    return -1;
  for (int64_t k = 0; k < a->tensor->count && k + 2 < put->input_count; k++)
    if (((const int32_t *)a->tensor->data)[k] == i)
      return (int)k + 2;
  return -1;
}

static bool puts_component(const struct graph *g, const struct node *put, const struct put_search *search, int64_t i, uint32_t *input,
                           bool *batched) {
  int at = puts_into(put, search->user) ? component_input(g, put, i) : -1;
  *input = at < 0 ? 0 : (uint32_t)at;
  *batched = false;
  return at >= 0;
}

/* Output `output` is component i of a tuple in the node's area: sizes in which all puts agree are constants. */
static status component_output(struct op_call *c, struct flow_node *n, uint32_t output, int64_t i) {
  const struct put_search search = {puts_component, c->node};
  int64_t sizes[LIMIT_RANK];
  rank_set ranks = op_put_ranks(c, &search, i, sizes);
  return op_host_output_ranked(c, n, output, ranks, sizes);
}

/* Unstage, StagePeek: all components of a tuple. */
status build_unstage(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  for (uint32_t i = 0; i < c->out_count; i++)
    TRY(component_output(c, n, i, i));
  return OK;
}

/* MapUnstage, MapPeek, MapUnstageNoKey: the components that `indices` lists, which must be known; the last gives the key too. */
status build_map_unstage(struct op_call *c) {
  struct flow_node *n;
  int64_t *indices;
  int count;
  uint32_t at = op_arg_index(c, "indices"), first = !op_takes(c, "key");
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  TRY(op_const_ints(c, n->inputs.items[at], "indices", &indices, &count));
  if (first)
    op_host_output(c, n, 0, 0, NULL); /* scalar, as keys are put */
  for (uint32_t i = first; i < c->out_count; i++)
    if ((int)(i - first) < count)
      TRY(component_output(c, n, i, indices[i - first]));
    else
      op_host_output(c, n, i, 0, NULL);
  return OK;
}
