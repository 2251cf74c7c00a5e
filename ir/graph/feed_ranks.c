/* feed_ranks.c: ranks from the nodes that take a tensor back to where it is fed. */
#include "ir/graph/feed_ranks.h"

/* Per node a set for each output. */
struct wanted {
  const struct graph *graph;
  rank_set **ranks;
};

static rank_set ranks_at(const struct wanted *w, struct edge e) { return w->ranks[e.node] ? w->ranks[e.node][e.port] : RANKS_ALL; }

static void want(struct wanted *w, struct edge e, rank_set ranks, struct arena *arena) {
  if (ranks == RANKS_ALL)
    return;
  uint32_t count = w->graph->nodes.items[e.node].output_count;
  if (!w->ranks[e.node]) {
    w->ranks[e.node] = ARENA_ARRAY(arena, rank_set, count);
    for (uint32_t i = 0; i < count; i++)
      w->ranks[e.node][i] = RANKS_ALL;
  }
  w->ranks[e.node][e.port] &= ranks;
}

/* How many inputs an argument is. */
static uint32_t arg_width(const struct node *n, const struct op_arg *arg) {
  dtype_list dtypes = {0};
  uint32_t count = registry_arg_dtypes(n, arg, &dtypes) == OK ? dtypes.count : 0;
  vec_free(&dtypes);
  return count;
}

/* What is wanted of the outputs that have the rank of this argument. */
static rank_set wanted_behind(const struct wanted *w, uint32_t node, int arg) {
  const struct op_def *def = w->graph->nodes.items[node].def;
  rank_set ranks = RANKS_ALL;
  for (uint32_t k = 0; k < def->output_count; k++)
    if (def->outputs[k].rank_of == arg) /* an op of which that is said has no lists: argument k is output k */
      ranks &= ranks_at(w, (struct edge){node, k});
  return ranks;
}

static void want_inputs(struct wanted *w, uint32_t node, struct arena *arena) {
  const struct node *n = &w->graph->nodes.items[node];
  uint32_t at = 0;
  for (uint32_t a = 0; a < n->def->input_count; a++) {
    rank_set ranks = n->def->inputs[a].ranks & wanted_behind(w, node, (int)a);
    for (uint32_t end = at + arg_width(n, &n->def->inputs[a]); at < end && at < n->input_count; at++)
      want(w, n->inputs[at], ranks, arena);
  }
}

status feed_ranks(const struct graph *graph, const bool *needed, const struct edge *feeds, uint32_t feed_count, struct arena *arena,
                  rank_set *out) {
  struct wanted w = {graph, ARENA_ARRAY(arena, rank_set *, graph->nodes.count + 1)};
  uint32_t *order = ARENA_ARRAY(arena, uint32_t, graph->nodes.count + 1);
  TRY(graph_order(graph, order));
  for (uint32_t i = graph->nodes.count; i-- > 0;)
    if (needed[order[i]] && graph->nodes.items[order[i]].def)
      want_inputs(&w, order[i], arena);
  for (uint32_t i = 0; i < feed_count; i++) {
    out[i] = ranks_at(&w, feeds[i]);
    out[i] = out[i] ? out[i] : RANKS_ALL;
  }
  return OK;
}
