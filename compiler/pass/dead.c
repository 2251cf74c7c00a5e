/* dead.c: drops what nobody needs: a node stays when it has an effect, or when a fetch, an effect or a size depends on it. */
#include <assert.h>
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
  if (n->stateful || n->is_target || n->op == FLOW_FETCH || n->op == FLOW_ASSIGN || n->op == FLOW_FEED || n->op == FLOW_SEND)
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

/* ---- dropping ---- */

/* Control edges to dropped nodes lead to what those came after. */
struct followed {
  const flow_id *items; /* kept nodes, each once */
  uint32_t count;
};

struct dropping {
  struct flow *flow;
  bool *keep;
  struct followed *followed; /* per dropped node */
  uint32_t *listed, round;   /* per node: the round in which it was listed last */
  VEC(flow_id) list;         /* of this round */
};

static void begin_list(struct dropping *d) {
  d->list.count = 0;
  d->round++;
}
static void list_once(struct dropping *d, const flow_id *items, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (d->listed[items[i]] != d->round) {
      d->listed[items[i]] = d->round;
      vec_push(&d->list, items[i]);
    }
}
static void list_followed(struct dropping *d, const flow_id *id) {
  if (d->keep[*id])
    list_once(d, id, 1);
  else
    list_once(d, d->followed[*id].items, d->followed[*id].count);
}

/* What a dropped node came after, when that is known of all nodes before it. Most hand on one list, so that a long line of them
 * shares it. */
static void follow(struct dropping *d, flow_id id) {
  const struct flow_node *gone = d->flow->nodes.items[id];
  const struct followed *longest = NULL;
  begin_list(d);
  for (uint32_t i = 0; gone && i < gone->controls.count + gone->inputs.count; i++) {
    flow_id before =
      i < gone->controls.count ? gone->controls.items[i] : d->flow->values.items[gone->inputs.items[i - gone->controls.count]].producer;
    if (!before)
      continue;
    assert(before < id); /* node numbers are an order */
    list_followed(d, &before);
    if (!d->keep[before] && (!longest || d->followed[before].count > longest->count))
      longest = &d->followed[before];
  }
  bool same = longest && longest->count == d->list.count;
  d->followed[id] =
    same ? *longest : (struct followed){arena_copy(d->flow->arena, d->list.items, sizeof *d->list.items * d->list.count), d->list.count};
}

void flow_drop_dead(struct flow *f) {
  uint32_t count = f->nodes.count;
  struct dropping d = {.flow = f,
                       .keep = calloc(count + 1, 1),
                       .followed = calloc(count + 1, sizeof *d.followed),
                       .listed = calloc(count + 1, sizeof *d.listed)};
  flow_mark_live(f, d.keep);
  for (flow_id id = 1; id < count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!d.keep[id]) {
      follow(&d, id);
      continue;
    }
    begin_list(&d);
    for (uint32_t i = 0; i < n->controls.count; i++)
      list_followed(&d, &n->controls.items[i]);
    n->controls.count = 0;
    for (uint32_t i = 0; i < d.list.count; i++)
      vec_push(&n->controls, d.list.items[i]);
    for (uint32_t i = 0; i < n->region_count; i++)
      flow_drop_dead(n->branches[i]);
  }
  for (flow_id id = 1; id < count; id++)
    if (!d.keep[id])
      f->nodes.items[id] = NULL;
  free(d.keep);
  free(d.followed);
  free(d.listed);
  vec_free(&d.list);
}

status pass_dead(struct build *build) {
  for (uint32_t i = 0; i < build->entries.count; i++)
    flow_drop_dead(build->entries.items[i].flow);
  return OK;
}
