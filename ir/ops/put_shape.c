/* put_shape.c: looking through the graph for what is put into a resource. */
#include "ir/ops/put_shape.h"

#include <string.h>

#include "ir/lower_frame.h"

/* The shape of an edge: as this walk knows it, or as a trial finds it. */
static bool edge_shape(struct op_call *c, struct edge e, int *rank, int64_t *sizes) {
  const struct frame *fr = c->lw->frame;
  if (lower_check_feed(c->lw, fr, e) != OK)
    return false;
  bool here = c->lw->region_depth == 0 && fr->graph == c->lw->graph && fr->lowered[e.node] && fr->bound[e.node];
  value_id v = here ? fr->bound[e.node][e.port].value : 0;
  if (!v)
    return lower_static_shape(c->lw, e, rank, sizes);
  *rank = op_value(c, v)->rank;
  for (int d = 0; d < *rank; d++)
    sizes[d] = op_dim_value(c, op_value(c, v)->dims[d]);
  return true;
}

static bool put_of(struct op_call *c, const struct put_search *search, const struct node *put, int64_t i, int *rank, int64_t *sizes) {
  uint32_t input;
  bool batched = false;
  if (!search->puts(c->lw->graph, put, search, i, &input, &batched) || !edge_shape(c, put->inputs[input], rank, sizes) || *rank < batched)
    return false;
  if (batched)
    memmove(sizes, sizes + 1, sizeof *sizes * (size_t)--*rank);
  return true;
}

status op_put_shape(struct op_call *c, const struct put_search *search, int64_t i, int *rank, int64_t *sizes) {
  const struct graph *g = c->lw->graph;
  const struct node *first = NULL;
  for (uint32_t n = 0; n < g->nodes.count; n++) {
    const struct node *put = &g->nodes.items[n];
    int64_t found[LIMIT_RANK];
    int k;
    if (!put_of(c, search, put, i, &k, found))
      continue;
    if (!first) {
      first = put;
      *rank = k;
      memcpy(sizes, found, sizeof found);
    }
    if (k != *rank)
      return fail(UNIMPLEMENTED, "component %lld of %s has several ranks: '%s' puts %d dimensions, '%s' %d", (long long)i, search->what,
                  first->name, *rank, put->name, k);
    for (int d = 0; d < k; d++)
      sizes[d] = sizes[d] == found[d] ? found[d] : -1;
  }
  return first ? OK
               : fail(UNIMPLEMENTED, "the rank of component %lld is not known: nothing in the graph says what is put into %s", (long long)i,
                      search->what);
}

bool op_same_resource(const struct graph *graph, const struct node *user, const struct node *maker) {
  const struct node *n = user->input_count ? &graph->nodes.items[user->inputs[0].node] : NULL;
  while (n && n->input_count && (strcmp(n->op, "Identity") == 0 || strcmp(n->op, "RefIdentity") == 0 || strcmp(n->op, "Enter") == 0 ||
                                 strcmp(n->op, "RefEnter") == 0 || strcmp(n->op, "Switch") == 0 || strcmp(n->op, "RefSwitch") == 0))
    n = &graph->nodes.items[n->inputs[0].node];
  if (!n || !maker)
    return false;
  const char *name = node_attr_string(n, "shared_name", "");
  bool same_node = n == maker || strcmp(n->name, maker->name) == 0;
  return same_node || (*name && strcmp(n->op, maker->op) == 0 && strcmp(name, node_attr_string(maker, "shared_name", "")) == 0 &&
                       strcmp(node_attr_string(n, "container", ""), node_attr_string(maker, "container", "")) == 0);
}
