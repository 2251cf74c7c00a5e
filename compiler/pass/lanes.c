/* lanes.c: edges from values, guards, controls, sizes and what the order keeps; groups of neighbours that need not wait for each other. */
#include "compiler/pass/lanes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/pass/order.h"
#include "compiler/edit/part_walk.h"
#include "compiler/pass/pass.h"

struct lane_walk {
  struct flow *flow;
  struct lanes *lanes;
  uint32_t *mark; /* per node: the node that listed it last */
  VEC(flow_id) before;
  /* sizes */
  uint32_t symbols;
  flow_id *binder;     /* per symbol: the node that gives it its value, the first in the order; 0 */
  VEC(uint32_t) bound; /* those with one */
  bool *seen;
  flow_id current;
};

/* Whether a part waits in its middle, so that it must run by counts. */
static bool flow_blocks(const struct flow *flow) {
  for (flow_id id = 1; id < flow->nodes.count; id++)
    if (flow->nodes.items[id] && flow->nodes.items[id]->blocks)
      return true;
  return false;
}

static enum lane lane_of(const struct flow_node *n) {
  bool meets = n->op == FLOW_HOST && (n->blocks || strncmp(n->host, "Collective", 10) == 0);
  return n->op == FLOW_SEND || n->op == FLOW_RECV || meets ? LANE_COMMUNICATION : LANE_COMPUTE;
}

/* ---- edges ---- */

static void add_before(struct lane_walk *w, flow_id before, flow_id id) {
  if (!before || before == id || !w->flow->nodes.items[before] || w->mark[before] == id)
    return;
  w->mark[before] = id;
  vec_push(&w->before, before);
}

static void note_binder(void *self, uint32_t symbol) {
  struct lane_walk *w = self;
  if (w->binder[symbol])
    return;
  w->binder[symbol] = w->current;
  vec_push(&w->bound, symbol);
}

static void add_size_edges(struct lane_walk *w, flow_id id) {
  if (w->bound.count == 0)
    return;
  memset(w->seen, 0, w->symbols);
  flow_node_symbols(w->flow, w->flow->nodes.items[id], w->seen);
  for (uint32_t i = 0; i < w->bound.count; i++)
    if (w->seen[w->bound.items[i]])
      add_before(w, w->binder[w->bound.items[i]], id);
}

static void add_edges(struct lane_walk *w, flow_id id, const flow_id *needs, uint32_t need_count) {
  const struct flow_node *n = w->flow->nodes.items[id];
  for (uint32_t i = 0; i < flow_input_count(n); i++)
    add_before(w, w->flow->values.items[flow_input(n, i)].producer, id);
  for (uint32_t i = 0; i < n->controls.count; i++)
    add_before(w, n->controls.items[i], id);
  for (uint32_t i = 0; i < need_count; i++)
    add_before(w, needs[i], id);
  add_size_edges(w, id);
  w->current = id;
  flow_node_binds(w->flow, n, note_binder, w);
}

/* The order's needs by the node that has them: list[at[n] .. at[n + 1]). */
static flow_id *index_needs(const struct flow *f, uint32_t *at) {
  const struct order *order = f->order;
  flow_id *list = calloc((size_t)order->needs.count + 1, sizeof *list);
  for (uint32_t i = 0; i < order->needs.count; i++)
    at[order->needs.items[i].after + 2]++;
  for (uint32_t n = 2; n < f->nodes.count + 2; n++)
    at[n] += at[n - 1];
  for (uint32_t i = 0; i < order->needs.count; i++)
    list[at[order->needs.items[i].after + 1]++] = order->needs.items[i].before;
  return list;
}

/* Nodes are asked in their order, for sizes have one; the lists are kept by number. */
static void collect_edges(struct lane_walk *w) {
  struct flow *f = w->flow;
  struct lanes *l = w->lanes;
  uint32_t *need_at = calloc((size_t)f->nodes.count + 3, sizeof *need_at), *from = calloc((size_t)f->nodes.count + 1, sizeof *from);
  flow_id *needs = index_needs(f, need_at);
  for (uint32_t i = 0; i < f->order->nodes.count; i++) {
    flow_id id = f->order->nodes.items[i];
    from[id] = w->before.count;
    add_edges(w, id, needs + need_at[id], need_at[id + 1] - need_at[id]);
    l->at[id + 1] = w->before.count - from[id];
  }
  for (uint32_t n = 1; n <= f->nodes.count; n++)
    l->at[n] += l->at[n - 1];
  l->before = ARENA_ARRAY(f->arena, flow_id, w->before.count + 1);
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (l->at[id + 1] > l->at[id])
      memcpy(l->before + l->at[id], w->before.items + from[id], sizeof(flow_id) * (l->at[id + 1] - l->at[id]));
  free(need_at);
  free(from);
  free(needs);
}

/* ---- groups ---- */

/* Kernels on values alone: nothing is locked or changed, and they always run. */
static bool may_group(const struct flow_node *n) {
  if (n->op != FLOW_KERNEL || n->guard_count)
    return false;
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++)
    if (n->args[i].var)
      return false;
  return true;
}

static bool is_nothing(const struct flow_node *n) { return n->controls.count == 0 && (n->op == FLOW_CONST || n->op == FLOW_NOOP); }

/* Whether a node needs a member: paths between neighbours are edges, or lead over an alias, for nothing else stands between them. */
static bool needs_group(const struct flow *f, flow_id id, uint32_t group) {
  const struct lanes *l = f->lanes;
  for (uint32_t i = l->at[id]; i < l->at[id + 1]; i++) {
    const struct flow_node *before = f->nodes.items[l->before[i]];
    flow_id maker = flow_is_view(before) ? f->values.items[flow_root(f, before->outputs.items[0])].producer : l->before[i];
    if (l->group[maker] == group)
      return true;
  }
  return false;
}

/* A kernel joins the group before it unless it needs a member. */
static void find_groups(const struct flow *f) {
  struct lanes *l = f->lanes;
  uint32_t group = 0, members = 0;
  flow_id first = 0;
  for (uint32_t i = 0; i < f->order->nodes.count; i++) {
    flow_id id = f->order->nodes.items[i];
    const struct flow_node *n = f->nodes.items[id];
    if (is_nothing(n) || flow_is_view(n))
      continue;
    bool joins = members > 0 && may_group(n) && !needs_group(f, id, group);
    if (!joins) {
      if (members == 1)
        l->group[first] = 0;
      group += members > 1;
      members = 0;
      group += group == 0;
    }
    if (!may_group(n))
      continue;
    first = members ? first : id;
    l->group[id] = group;
    members++;
  }
  if (members == 1)
    l->group[first] = 0;
}

static status find_lanes(struct build *b, const struct part_ref *part, struct flow *f, void *self) {
  (void)b, (void)self;
  if (f->lanes)
    return OK; /* a function that several calls run */
  struct lanes *l = f->lanes = ARENA_NEW(f->arena, struct lanes);
  struct lane_walk w = {.flow = f, .lanes = l, .symbols = dims_symbol_count(f->dims)};
  w.mark = calloc((size_t)f->nodes.count + 1, sizeof *w.mark);
  w.binder = calloc((size_t)w.symbols + 1, sizeof *w.binder);
  w.seen = calloc((size_t)w.symbols + 1, sizeof *w.seen);
  l->at = ARENA_ARRAY(f->arena, uint32_t, f->nodes.count + 2);
  l->lane = ARENA_ARRAY(f->arena, uint8_t, f->nodes.count + 1);
  l->group = ARENA_ARRAY(f->arena, uint32_t, f->nodes.count + 1);
  l->by_counts = f == part->flow && !part->is_function && flow_blocks(f);
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id])
      l->lane[id] = (uint8_t)lane_of(f->nodes.items[id]);
  collect_edges(&w);
  if (!l->by_counts)
    find_groups(f);
  free(w.mark);
  free(w.binder);
  free(w.seen);
  vec_free(&w.before);
  vec_free(&w.bound);
  return OK;
}

status pass_lanes(struct build *b) { return part_each_flow(b, find_lanes, NULL); }

/* ---- the verifier ---- */

static status check_lanes(const struct flow *f, uint32_t *place) {
  const struct lanes *l = f->lanes;
  for (uint32_t i = 0; i < f->order->nodes.count; i++)
    place[f->order->nodes.items[i]] = i + 1;
  for (uint32_t i = 0; i < f->order->nodes.count; i++) {
    flow_id id = f->order->nodes.items[i];
    for (uint32_t j = l->at[id]; j < l->at[id + 1]; j++) {
      flow_id before = l->before[j];
      if (place[before] >= place[id])
        return fail(INTERNAL, "lanes: #%u comes after #%u, which the order has behind it", id, before);
      if (l->group[id] && l->group[before] == l->group[id])
        return fail(INTERNAL, "lanes: #%u runs beside #%u, which it needs", id, before);
    }
    if (l->group[id] && !may_group(f->nodes.items[id]))
      return fail(INTERNAL, "lanes: #%u is no kernel on values alone", id);
  }
  return OK;
}

status lanes_verify(const struct flow *f) {
  uint32_t *place = calloc((size_t)f->nodes.count + 1, sizeof *place);
  status result = check_lanes(f, place);
  free(place);
  return result;
}

/* ---- text ---- */

static void print_lanes(FILE *out, const struct flow *f, int indent) {
  const struct lanes *l = f->lanes;
  fprintf(out, "%*sruns %s\n", indent, "", l->by_counts ? "by counts" : "in order");
  for (uint32_t i = 0; i < f->order->nodes.count; i++) {
    flow_id id = f->order->nodes.items[i];
    const struct flow_node *n = f->nodes.items[id];
    fprintf(out, "%*s", indent, "");
    flow_print_node(out, f, id);
    for (uint32_t j = l->at[id]; j < l->at[id + 1]; j++)
      fprintf(out, "%s#%u", j > l->at[id] ? ", " : " after ", l->before[j]);
    if (l->group[id])
      fprintf(out, " in group %u", l->group[id]);
    fputs(l->lane[id] == LANE_COMMUNICATION ? " communication\n" : "\n", out);
    for (uint32_t r = 0; (n->op == FLOW_IF || n->op == FLOW_WHILE) && r < n->region_count; r++)
      print_lanes(out, n->branches[r], indent + 4);
  }
}

void lanes_print(const struct flow *f, struct arena *arena, FILE *out) {
  (void)arena;
  print_lanes(out, f, 0);
}
