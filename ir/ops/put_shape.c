/* put_shape.c: looking through the graph for what is put into a resource. */
#include "ir/ops/put_shape.h"

#include <string.h>

#include "ir/lower/lower_walk.h"
#include "ir/lower/host_call.h"

/* The shape of an edge: as this walk knows it, or as a trial finds it. */
static bool edge_shape(struct op_call *c, struct edge e, int *rank, int64_t *sizes) {
  const struct frame *fr = op_frame(c);
  if (lower_check_feed(c->lw, fr, e) != OK)
    return false;
  bool here = !op_in_region(c) && fr->graph == op_graph(c) && fr->lowered[e.node] && fr->bound[e.node];
  value_id v = here ? fr->bound[e.node][e.port].value : 0;
  if (!v)
    return lower_said_shape(c->lw, e, rank, sizes);
  *rank = op_value(c, v)->rank;
  for (int d = 0; d < *rank; d++)
    sizes[d] = op_dim_value(c, op_value(c, v)->dims[d]);
  return true;
}

/* The ranks of what `put` may put, 0 when it puts nothing. */
static rank_set ranks_of_put(struct op_call *c, const struct put_search *search, const struct node *put, int64_t i, int64_t *sizes) {
  uint32_t input;
  bool batched = false;
  int rank;
  if (!search->puts(op_graph(c), put, search, i, &input, &batched))
    return 0;
  if (!edge_shape(c, put->inputs[input], &rank, sizes))
    return ANY_RANK;
  if (rank < batched)
    return 0;
  if (batched)
    memmove(sizes, sizes + 1, sizeof *sizes * (size_t)--rank);
  return ranks_of(rank);
}

rank_set op_put_ranks(struct op_call *c, const struct put_search *search, int64_t i, int64_t *sizes) {
  const struct graph *g = op_graph(c);
  rank_set all = 0;
  for (int d = 0; d < LIMIT_RANK; d++)
    sizes[d] = -1;
  for (uint32_t n = 0; n < g->nodes.count; n++) {
    int64_t found[LIMIT_RANK];
    rank_set ranks = ranks_of_put(c, search, &g->nodes.items[n], i, found);
    for (int d = 0; ranks != ANY_RANK && d < LIMIT_RANK && ranks_of(d) < ranks; d++)
      sizes[d] = !all || sizes[d] == found[d] ? found[d] : -1;
    all |= ranks;
  }
  return all ? all : ANY_RANK;
}

status op_host_output_ranked(struct op_call *c, struct flow_node *n, uint32_t i, rank_set ranks, const int64_t *sizes) {
  if (ranks_are_many(ranks)) {
    op_host_output(c, n, i, 0, NULL);
    return op_any_rank(c, c->out[i].value, ranks, &c->out[i]);
  }
  dim dims[LIMIT_RANK];
  int rank = ranks_lowest(ranks);
  for (int d = 0; d < rank; d++)
    dims[d] = !sizes || sizes[d] < 0 ? op_new_symbol(c) : op_dim(c, sizes[d]);
  op_host_output(c, n, i, rank, dims);
  return OK;
}

bool op_same_resource(const struct graph *graph, const struct node *user, const struct node *maker) {
  const struct node *n = user->input_count ? &graph->nodes.items[user->inputs[0].node] : NULL;
  while (n && n->input_count &&
         (strcmp(n->op, "Identity") == 0 || strcmp(n->op, "RefIdentity") == 0 || strcmp(n->op, "Enter") == 0 ||
          strcmp(n->op, "RefEnter") == 0 || strcmp(n->op, "Switch") == 0 || strcmp(n->op, "RefSwitch") == 0))
    n = &graph->nodes.items[n->inputs[0].node];
  if (!n || !maker)
    return false;
  const char *name = node_attr_string(n, "shared_name", "");
  bool same_node = n == maker || strcmp(n->name, maker->name) == 0;
  return same_node || (*name && strcmp(n->op, maker->op) == 0 && strcmp(name, node_attr_string(maker, "shared_name", "")) == 0 &&
                       strcmp(node_attr_string(n, "container", ""), node_attr_string(maker, "container", "")) == 0);
}
