/* dead.c: drops what nobody needs: a node stays when it has an effect, or when a fetch, an effect or a size depends on it. */
#include <stdlib.h>

#include "compiler/pass/pass.h"

static void mention(const struct flow *f, value_id v, bool *seen) {
  const struct flow_value *x = &f->values.items[v];
  for (int i = 0; i < x->rank; i++)
    dim_symbols(f->dims, dim_resolve(f->dims, x->dims[i]), seen);
}

static void region_symbols(const struct flow *f, bool *seen) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id])
      flow_node_symbols(f, f->nodes.items[id], seen);
}

void flow_node_symbols(const struct flow *f, const struct flow_node *n, bool *seen) {
  for (uint32_t i = 0; i < n->inputs.count; i++)
    mention(f, n->inputs.items[i], seen);
  for (uint32_t i = 0; i < n->outputs.count; i++)
    mention(f, n->outputs.items[i], seen);
  for (uint32_t i = 0; n->op == FLOW_KERNEL && i < n->kernel->size_count; i++)
    dim_symbols(f->dims, dim_resolve(f->dims, n->sizes[i]), seen);
  for (uint32_t i = 0; i < n->region_count; i++)
    region_symbols(n->branches[i], seen);
}

void flow_node_binds(const struct flow *f, const struct flow_node *n, void (*found)(void *, uint32_t), void *self) {
  for (uint32_t i = 0; i < n->bind_count; i++)
    found(self, n->binds[i]);
  if (n->op != FLOW_FEED && n->op != FLOW_HOST && n->op != FLOW_READ && n->op != FLOW_RECV && n->op != FLOW_IF && n->op != FLOW_WHILE &&
      n->op != FLOW_MERGE)
    return;
  for (uint32_t i = 0; i < n->outputs.count; i++) {
    const struct flow_value *v = &f->values.items[n->outputs.items[i]];
    uint32_t symbol;
    for (int d = 0; d < v->rank; d++)
      if (dim_is_symbol(f->dims, dim_resolve(f->dims, v->dims[d]), &symbol))
        found(self, symbol);
  }
}

/* ---- liveness ---- */

struct liveness {
  const struct flow *flow;
  bool *keep;
  flow_id *binder; /* per symbol: the first node that binds it */
  flow_id current;
  uint32_t symbols;
  VEC(flow_id) work;
};

static void note_binder(void *self, uint32_t symbol) {
  struct liveness *l = self;
  if (!l->binder[symbol])
    l->binder[symbol] = l->current;
}

static void keep_node(struct liveness *l, flow_id id) {
  if (!id || l->keep[id] || !l->flow->nodes.items[id])
    return;
  l->keep[id] = true;
  vec_push(&l->work, id);
}

static bool has_effect(const struct flow_node *n) {
  if (n->stateful || n->op == FLOW_FETCH || n->op == FLOW_ASSIGN || n->op == FLOW_FEED || n->op == FLOW_SEND)
    return true;
  for (uint32_t i = 0; i < n->region_count; i++)
    for (flow_id id = 1; id < n->branches[i]->nodes.count; id++)
      if (n->branches[i]->nodes.items[id] && has_effect(n->branches[i]->nodes.items[id]))
        return true;
  return false;
}

/* A computed size that was assumed equal to another while compiling is checked where it is bound. */
static bool checks_size(const struct flow *f, const struct flow_node *n) {
  for (uint32_t i = 0; i < n->bind_count; i++) {
    uint32_t symbol;
    dim d = dim_resolve(f->dims, dim_of_symbol(f->dims, n->binds[i]));
    if (!dim_is_symbol(f->dims, d, &symbol) || symbol != n->binds[i])
      return true;
  }
  return false;
}

void flow_mark_live(const struct flow *f, bool *keep) {
  struct liveness l = {.flow = f, .keep = keep, .symbols = dims_symbol_count(f->dims)};
  l.binder = calloc(l.symbols + 1, sizeof *l.binder);
  bool *seen = calloc(l.symbols + 1, 1);
  for (l.current = 1; l.current < f->nodes.count; l.current++) {
    if (!f->nodes.items[l.current])
      continue;
    flow_node_binds(f, f->nodes.items[l.current], note_binder, &l);
    if (has_effect(f->nodes.items[l.current]) || checks_size(f, f->nodes.items[l.current]))
      keep_node(&l, l.current);
  }
  for (uint32_t i = 0; i < f->results.count; i++)
    keep_node(&l, f->values.items[f->results.items[i]].producer);
  while (l.work.count) {
    const struct flow_node *n = f->nodes.items[l.work.items[--l.work.count]];
    for (uint32_t i = 0; i < n->inputs.count; i++)
      keep_node(&l, f->values.items[n->inputs.items[i]].producer);
    for (uint32_t i = 0; i < n->guard_count; i++)
      keep_node(&l, f->values.items[n->guards[i].predicate].producer);
    for (uint32_t i = 0; i < l.symbols; i++)
      seen[i] = false;
    flow_node_symbols(f, n, seen);
    for (uint32_t i = 0; i < l.symbols; i++)
      if (seen[i])
        keep_node(&l, l.binder[i]);
  }
  free(l.binder);
  free(seen);
  vec_free(&l.work);
}


/* Control edges to dropped nodes lead to what those came after. */
static void add_once(struct flow_node *n, flow_id id) {
  for (uint32_t i = 0; i < n->controls.count; i++)
    if (n->controls.items[i] == id)
      return;
  vec_push(&n->controls, id);
}

static void inherit(struct flow *f, const bool *keep, flow_id from, struct flow_node *to, uint32_t *visited, uint32_t round) {
  if (visited[from] == round)
    return;
  visited[from] = round;
  if (keep[from]) {
    add_once(to, from);
    return;
  }
  const struct flow_node *gone = f->nodes.items[from];
  for (uint32_t i = 0; gone && i < gone->controls.count; i++)
    inherit(f, keep, gone->controls.items[i], to, visited, round);
  for (uint32_t i = 0; gone && i < gone->inputs.count; i++)
    if (f->values.items[gone->inputs.items[i]].producer)
      inherit(f, keep, f->values.items[gone->inputs.items[i]].producer, to, visited, round);
}

static void drop_dead(struct flow *f) {
  bool *keep = calloc(f->nodes.count + 1, 1);
  uint32_t *visited = calloc(f->nodes.count + 1, sizeof *visited);
  flow_mark_live(f, keep);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!n || !keep[id])
      continue;
    uint32_t count = n->controls.count;
    flow_id *old = n->controls.items;
    n->controls.items = NULL;
    n->controls.count = n->controls.capacity = 0;
    for (uint32_t i = 0; i < count; i++)
      inherit(f, keep, old[i], n, visited, id);
    free(old);
    for (uint32_t i = 0; i < n->region_count; i++)
      drop_dead(n->branches[i]);
  }
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (!keep[id])
      f->nodes.items[id] = NULL;
  free(keep);
  free(visited);
}

status pass_dead(struct build *build) {
  for (uint32_t i = 0; i < build->entries.count; i++)
    drop_dead(build->entries.items[i].flow);
  return OK;
}
