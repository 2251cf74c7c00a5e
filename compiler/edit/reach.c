/* reach.c: see reach.h. */
#include "compiler/edit/reach.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/pass/pass.h"

#define PATH_SHOWN 8

/* ---- order of updates and reads ---- */

struct ordering {
  struct reach *r;
  uint32_t *stamp, round; /* per node */
};

/* Whether `from` runs before node `to` by the flow's edges; nodes before it in number need not be looked at. */
static bool is_ordered(struct ordering *o, flow_id from, flow_id to) {
  const struct flow *f = o->r->flow;
  const struct flow_node *n = f->nodes.items[to];
  if (to == from)
    return true;
  if (to < from || !n || o->stamp[to] == o->round)
    return false;
  o->stamp[to] = o->round;
  for (uint32_t i = 0; i < n->controls.count; i++)
    if (is_ordered(o, from, n->controls.items[i]))
      return true;
  for (uint32_t i = 0; i < node_input_count(n); i++)
    if (node_input(n, i) && is_ordered(o, from, f->values.items[node_input(n, i)].producer))
      return true;
  return false;
}

struct touched {
  VEC(uint32_t) vars;
  VEC(uint32_t) updated;
};
static void note_touch(void *self, uint32_t var, enum touch touch) {
  struct touched *t = self;
  vec_push(&t->vars, var);
  if (touch == TOUCH_UPDATE)
    vec_push(&t->updated, var);
}

/* The variables of a node with its regions. */
static void collect(struct touched *t, const struct flow_node *n) {
  uint32_t var;
  t->vars.count = t->updated.count = 0;
  for (uint32_t i = 0; i < node_touch_count(n); i++) {
    enum touch touch = node_touch(n, i, &var);
    if (touch != TOUCH_NONE)
      note_touch(t, var, touch);
  }
  for (uint32_t i = 0; i < n->region_count; i++)
    flow_touches(n->branches[i], note_touch, t);
}

struct update_link {
  flow_id node;
  uint32_t earlier; /* index + 1 */
};

static int compare_befores(const void *a, const void *b) {
  const struct reach_before *x = a, *y = b;
  return x->node != y->node ? (x->node < y->node ? -1 : 1) : x->var < y->var ? -1 : x->var > y->var;
}

static void find_orders(struct reach *r) {
  struct ordering o = {.r = r, .stamp = calloc(r->flow->nodes.count + 1, sizeof *o.stamp)};
  uint32_t *last = calloc(r->build->vars.count + 1, sizeof *last);
  VEC(struct update_link) links = {0};
  struct touched t = {0};
  for (flow_id id = 1; id < r->flow->nodes.count; id++) {
    const struct flow_node *n = r->flow->nodes.items[id];
    if (!n)
      continue;
    collect(&t, n);
    for (uint32_t i = 0; i < t.vars.count; i++)
      for (uint32_t l = last[t.vars.items[i]]; l; l = links.items[l - 1].earlier) {
        o.round++;
        if (!is_ordered(&o, links.items[l - 1].node, id))
          continue;
        if (links.items[l - 1].node > r->before[id])
          r->before[id] = links.items[l - 1].node;
        vec_push(&r->befores, (struct reach_before){id, t.vars.items[i], links.items[l - 1].node});
        break;
      }
    for (uint32_t i = 0; i < t.updated.count; i++) {
      vec_push(&links, (struct update_link){id, last[t.updated.items[i]]});
      last[t.updated.items[i]] = links.count;
    }
  }
  if (r->befores.count)
    qsort(r->befores.items, r->befores.count, sizeof *r->befores.items, compare_befores);
  vec_free(&t.vars);
  vec_free(&t.updated);
  vec_free(&links);
  free(last);
  free(o.stamp);
}

flow_id reach_update_before(const struct reach *r, flow_id node, uint32_t var) {
  struct reach_before asked = {.node = node, .var = var};
  const struct reach_before *found =
    r->befores.count ? bsearch(&asked, r->befores.items, r->befores.count, sizeof asked, compare_befores) : NULL;
  return found ? found->update : 0;
}

void reach_init(struct reach *r, struct build *build, const struct flow *flow) {
  uint32_t values = flow->values.count + 1, nodes = flow->nodes.count + 1;
  *r = (struct reach){.build = build, .flow = flow};
  r->before = calloc(nodes, sizeof *r->before);
  r->cut = calloc(values, 1);
  r->of_variables = calloc(values, 1);
  r->differs = calloc(values, 1);
  r->node_differs = calloc(nodes, 1);
  r->own = calloc(nodes, 1);
  r->carried = calloc(values, 1);
  r->behind = calloc(values, 1);
  r->node_depends = calloc(nodes, 1);
  r->dominator = calloc(values, sizeof *r->dominator);
  r->node_dominator = calloc(nodes, sizeof *r->node_dominator);
  r->depth = calloc(values, sizeof *r->depth);
  r->dominates = calloc(values, sizeof *r->dominates);
  r->symbols = dims_symbol_count(flow->dims);
  r->own_size = calloc(r->symbols + 1, 1);
  r->seen = calloc(r->symbols + 1, 1);
  find_orders(r);
}

void reach_deinit(struct reach *r) {
  free(r->before);
  vec_free(&r->befores);
  free(r->own_size);
  free(r->seen);
  free(r->cut);
  free(r->of_variables);
  free(r->differs);
  free(r->node_differs);
  free(r->own);
  free(r->carried);
  free(r->behind);
  free(r->node_depends);
  free(r->dominator);
  free(r->node_dominator);
  free(r->depth);
  free(r->dominates);
  free(r->reaches);
  vec_free(&r->updates);
}

/* ---- what differs ---- */

/* State of an op, such as a random counter, is each worker's own. */
static void note_own_state(void *self, uint32_t var, enum touch touch) {
  struct touched *t = self;
  (void)touch;
  vec_push(&t->vars, var);
}

static bool has_own_state(const struct reach *r, const struct flow_node *n) {
  struct touched t = {0};
  uint32_t var;
  bool own = false;
  for (uint32_t i = 0; i < node_touch_count(n); i++)
    if (node_touch(n, i, &var) != TOUCH_NONE)
      note_own_state(&t, var, TOUCH_READ);
  for (uint32_t i = 0; i < n->region_count; i++)
    flow_touches(n->branches[i], note_own_state, &t);
  for (uint32_t i = 0; i < t.vars.count; i++)
    own = own || r->build->vars.items[t.vars.items[i]].zero_initial;
  vec_free(&t.vars);
  return own;
}

/* Whether one of its sizes is the worker's own. */
static bool has_own_size(const struct reach *r, const struct flow_node *n) {
  bool own = false;
  memset(r->seen, 0, r->symbols + 1);
  flow_node_symbols(r->flow, n, r->seen);
  for (uint32_t i = 0; i < r->symbols; i++)
    own = own || (r->seen[i] && r->own_size[i]);
  return own;
}

static bool region_is_source(const struct flow *f);

/* Made of something that was made alike: rows of several workers are as many for each. */
static bool is_behind(const struct reach *r, const struct flow_node *n) {
  for (uint32_t i = 0; i < node_input_count(n); i++)
    if (node_input(n, i) && (r->cut[node_input(n, i)] || r->behind[node_input(n, i)]))
      return true;
  return false;
}

/* Gives values that are the worker's own whatever its inputs. */
static bool is_source(const struct reach *r, const struct flow_node *n) {
  if (n->op == FLOW_FEED)
    return r->flow->values.items[n->outputs.items[0]].rank > 0;
  if (n->op == FLOW_HOST)
    return (n->stateful || n->blocks) && n->outputs.count && r->flow->values.items[n->outputs.items[0]].dtype != DTYPE_RESOURCE;
  for (uint32_t i = 0; i < n->region_count; i++)
    if (region_is_source(n->branches[i]))
      return true;
  if (n->op == FLOW_READ || n->op == FLOW_ASSIGN)
    return false;
  return has_own_state(r, n) || (!r->blocked && !is_behind(r, n) && has_own_size(r, n));
}
static bool region_is_source(const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_HOST && (f->nodes.items[id]->stateful || f->nodes.items[id]->blocks))
      return true;
  return false;
}

bool reach_is_scalar(const struct reach *r, value_id v) {
  const struct flow_value *x = &r->flow->values.items[v];
  return x->rank == 0 && x->dtype != DTYPE_VARIANT && x->dtype != DTYPE_RESOURCE; /* a list of tensors is none */
}

bool reach_leads_to(const struct reach *r, value_id v, flow_id node) {
  if (!r->differs[v] || v == r->blocked || (r->cut[v] && !r->own[node]))
    return false;
  return r->scalars || !reach_is_scalar(r, v);
}

/* ---- dominators ---- */

static value_id common_dominator(const struct reach *r, value_id a, value_id b) {
  while (a != b) {
    if ((a ? r->depth[a] : 0) >= (b ? r->depth[b] : 0))
      a = r->dominator[a];
    else
      b = r->dominator[b];
  }
  return a;
}

static void meet(const struct reach *r, bool *any, value_id *at, value_id with) {
  *at = *any ? common_dominator(r, *at, with) : with;
  *any = true;
}

static void note_read(void *self, uint32_t var, enum touch touch) {
  (void)var;
  *(bool *)self = *(bool *)self || touch == TOUCH_READ;
}
static bool regions_read(const struct flow_node *n) {
  bool reads = false;
  for (uint32_t i = 0; i < n->region_count; i++)
    flow_touches(n->branches[i], note_read, &reads);
  return reads;
}

static void note_own_size(void *self, uint32_t symbol) { ((struct reach *)self)->own_size[symbol] = true; }

static void visit(struct reach *r, flow_id id) {
  const struct flow_node *n = r->flow->nodes.items[id];
  bool source = is_source(r, n), differs = source, depends = false;
  flow_id before = r->before[id], changed = !r->settled && before && r->node_differs[before] ? before : 0;
  bool carried = changed != 0;
  value_id at = 0;
  for (uint32_t i = 0; i < node_input_count(n); i++) {
    value_id v = node_input(n, i);
    depends = depends || (v && r->of_variables[v]);
    if (v && reach_leads_to(r, v, id))
      meet(r, &differs, &at, v);
    carried = carried || (v && reach_leads_to(r, v, id) && r->carried[v]);
  }
  if (source)
    at = 0;
  if (changed)
    meet(r, &differs, &at, r->node_dominator[changed]);
  uint32_t var;
  for (uint32_t i = 0; i < node_touch_count(n) && !before; i++)
    depends = depends || (n->op != FLOW_ASSIGN && node_touch(n, i, &var) != TOUCH_NONE);
  depends = depends || regions_read(n);
  r->node_differs[id] = differs;
  r->node_depends[id] = depends || (before && r->node_depends[before]);
  r->node_dominator[id] = at;
  if (differs)
    flow_node_binds(r->flow, n, note_own_size, r);
  for (uint32_t i = 0; i < n->outputs.count; i++) {
    value_id v = n->outputs.items[i];
    r->of_variables[v] = r->node_depends[id];
    r->differs[v] = differs;
    r->behind[v] = !differs && is_behind(r, n);
    r->carried[v] = carried;
    r->dominator[v] = at;
    r->depth[v] = (at ? r->depth[at] : 0) + 1;
  }
}

static bool changes_shared(const struct reach *r, const struct flow_node *n) {
  struct touched t = {0};
  collect(&t, n);
  bool changes = false;
  for (uint32_t i = 0; i < t.updated.count; i++)
    changes = changes || !r->build->vars.items[t.updated.items[i]].zero_initial;
  vec_free(&t.vars);
  vec_free(&t.updated);
  return changes;
}

static void list_updates(struct reach *r) {
  r->updates.count = 0;
  memset(r->dominates, 0, sizeof *r->dominates * r->flow->values.count);
  for (flow_id id = 1; id < r->flow->nodes.count; id++) {
    if (!r->flow->nodes.items[id] || !r->node_differs[id] || !changes_shared(r, r->flow->nodes.items[id]))
      continue;
    vec_push(&r->updates, id);
    for (value_id v = r->node_dominator[id]; v; v = r->dominator[v])
      r->dominates[v]++;
  }
}

static void merge_bits(uint64_t *into, const uint64_t *from, uint32_t words) {
  for (uint32_t i = 0; i < words; i++)
    into[i] |= from[i];
}

/* From the last node to the first: what each value reaches. */
static void spread_back(struct reach *r) {
  uint32_t count = r->updates.count;
  r->words = count / 64 + 1;
  free(r->reaches);
  r->reaches = calloc((size_t)r->words * r->flow->values.count + 1, sizeof *r->reaches);
  uint64_t *of_node = calloc((size_t)r->words * r->flow->nodes.count + 1, sizeof *of_node);
  for (uint32_t i = 0; i < count; i++)
    of_node[(size_t)r->updates.items[i] * r->words + i / 64] |= (uint64_t)1 << i % 64;
  for (flow_id id = r->flow->nodes.count - 1; id > 0; id--) {
    const struct flow_node *n = r->flow->nodes.items[id];
    if (!n || !r->node_differs[id])
      continue;
    uint64_t *here = of_node + (size_t)id * r->words;
    for (uint32_t i = 0; i < n->outputs.count; i++)
      merge_bits(here, r->reaches + (size_t)n->outputs.items[i] * r->words, r->words);
    for (uint32_t i = 0; i < node_input_count(n); i++)
      if (node_input(n, i) && reach_leads_to(r, node_input(n, i), id))
        merge_bits(r->reaches + (size_t)node_input(n, i) * r->words, here, r->words);
    if (r->before[id] && !r->settled)
      merge_bits(of_node + (size_t)r->before[id] * r->words, here, r->words);
  }
  free(of_node);
}

void reach_mark_sources(const struct flow *f, bool *nodes) {
  for (flow_id id = f->nodes.count - 1; id > 0; id--)
    for (uint32_t i = 0; f->nodes.items[id] && nodes[id] && i < node_input_count(f->nodes.items[id]); i++)
      if (node_input(f->nodes.items[id], i))
        nodes[f->values.items[node_input(f->nodes.items[id], i)].producer] = true;
}

/* What values of the cut are made of. */
static void find_own(struct reach *r) {
  const struct flow *f = r->flow;
  memset(r->own, 0, f->nodes.count);
  if (r->explicit)
    return;
  for (value_id v = 1; v < f->values.count; v++)
    if (r->cut[v])
      r->own[f->values.items[v].producer] = true;
  reach_mark_sources(f, r->own);
}

void reach_run(struct reach *r, bool scalars) {
  r->scalars = scalars;
  find_own(r);
  memset(r->differs, 0, r->flow->values.count);
  memset(r->node_differs, 0, r->flow->nodes.count);
  memset(r->own_size, 0, r->symbols + 1);
  for (flow_id id = 1; id < r->flow->nodes.count; id++)
    if (r->flow->nodes.items[id])
      visit(r, id);
  list_updates(r);
  spread_back(r);
}

static uint32_t count_reached(const struct reach *r, value_id v) {
  uint32_t reached = 0;
  for (uint32_t i = 0; i < r->words; i++)
    reached += (uint32_t)__builtin_popcountll(r->reaches[(size_t)v * r->words + i]);
  return reached;
}

bool reach_is_passed(const struct reach *r, value_id v) { return count_reached(r, v) == r->dominates[v]; }

bool reach_is_own(const struct reach *r, value_id v) { return r->dominates[v] > 0 && reach_is_passed(r, v); }

bool reach_comes_by(const struct reach *r, flow_id update, value_id v) {
  value_id at = r->node_dominator[update];
  while (at && at != v)
    at = r->dominator[at];
  return at != 0;
}

/* ---- text ---- */

static flow_id differs_because(const struct reach *r, flow_id id) {
  const struct flow_node *n = r->flow->nodes.items[id];
  for (uint32_t i = 0; i < node_input_count(n); i++)
    if (node_input(n, i) && reach_leads_to(r, node_input(n, i), id))
      return r->flow->values.items[node_input(n, i)].producer;
  return r->before[id] && r->node_differs[r->before[id]] ? r->before[id] : 0;
}

const char *reach_path(const struct reach *r, flow_id id, struct arena *arena) {
  const char *text = r->flow->nodes.items[id]->name;
  for (int shown = 1; (id = differs_because(r, id)) != 0; shown++)
    if (shown < PATH_SHOWN)
      text = arena_printf(arena, "%s <- %s", text, r->flow->nodes.items[id]->name);
    else if (!differs_because(r, id))
      text = arena_printf(arena, "%s <- ... <- %s", text, r->flow->nodes.items[id]->name);
  return text;
}
