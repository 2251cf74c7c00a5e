/* flow_edit.c: see flow_edit.h. */
#include "compiler/edit/flow_edit.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/pass/pass.h"

static uint32_t own_inputs(const struct flow_node *n) { return n->op == FLOW_KERNEL ? n->kernel->buffers.count : n->inputs.count; }

uint32_t node_input_count(const struct flow_node *n) { return own_inputs(n) + n->guard_count; }

value_id node_input(const struct flow_node *n, uint32_t i) {
  if (i >= own_inputs(n))
    return n->guards[i - own_inputs(n)].predicate;
  if (n->op != FLOW_KERNEL)
    return n->inputs.items[i];
  return n->kernel->buffers.items[i].mode == BUFFER_IN && !n->args[i].var ? n->args[i].value : NO_VALUE;
}

bool node_takes(const struct flow_node *n, value_id v) {
  for (uint32_t i = 0; i < node_input_count(n); i++)
    if (node_input(n, i) == v)
      return true;
  return false;
}

void flow_replace_uses(struct flow *f, value_id from, value_id to) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && node_takes(f->nodes.items[id], from))
      node_replace_input(f->nodes.items[id], from, to, f->arena);
  for (uint32_t i = 0; i < f->results.count; i++)
    if (f->results.items[i] == from)
      f->results.items[i] = to;
}

uint32_t flow_use_count(const struct flow *f, value_id v, flow_id *user) {
  uint32_t count = 0;
  *user = 0;
  for (uint32_t i = 0; i < f->results.count; i++)
    count += f->results.items[i] == v;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && i < node_input_count(n); i++) {
      if (node_input(n, i) != v)
        continue;
      count++;
      *user = id;
    }
  }
  return count;
}

bool nodes_same_guards(const struct flow_node *a, const struct flow_node *b) {
  bool same = a->guard_count == b->guard_count;
  for (uint32_t i = 0; same && i < a->guard_count; i++)
    same = a->guards[i].predicate == b->guards[i].predicate && a->guards[i].expected == b->guards[i].expected;
  return same;
}

void node_replace_input(struct flow_node *n, value_id from, value_id to, struct arena *arena) {
  for (uint32_t i = 0; i < n->inputs.count; i++)
    if (n->inputs.items[i] == from)
      n->inputs.items[i] = to;
  for (uint32_t i = 0; n->op == FLOW_KERNEL && i < n->kernel->buffers.count; i++)
    if (n->args[i].value == from && n->kernel->buffers.items[i].mode == BUFFER_IN)
      n->args[i].value = to;
  struct flow_guard *guards = n->guard_count ? arena_copy(arena, n->guards, n->guard_count * sizeof *guards) : NULL;
  for (uint32_t i = 0; i < n->guard_count; i++)
    if (guards[i].predicate == from)
      guards[i].predicate = to;
  n->guards = guards;
}

/* ---- variables ---- */

uint32_t node_touch_count(const struct flow_node *n) {
  if (n->op == FLOW_KERNEL)
    return n->kernel->buffers.count;
  return n->op == FLOW_READ || n->op == FLOW_ASSIGN || n->op == FLOW_VARIABLE;
}

enum touch node_touch(const struct flow_node *n, uint32_t i, uint32_t *var) {
  if (n->op != FLOW_KERNEL) {
    *var = n->var;
    return n->op == FLOW_ASSIGN ? TOUCH_UPDATE : TOUCH_READ;
  }
  if (!n->args[i].var)
    return TOUCH_NONE;
  *var = n->args[i].var - 1;
  return n->kernel->buffers.items[i].mode == BUFFER_IN ? TOUCH_READ : TOUCH_UPDATE;
}

bool node_updates(const struct flow_node *n) {
  uint32_t var;
  for (uint32_t i = 0; i < node_touch_count(n); i++)
    if (node_touch(n, i, &var) == TOUCH_UPDATE)
      return true;
  return false;
}

void node_touches(const struct flow_node *n, void (*found)(void *, uint32_t, enum touch), void *self) {
  uint32_t var;
  for (uint32_t i = 0; i < node_touch_count(n); i++) {
    enum touch touch = node_touch(n, i, &var);
    if (touch != TOUCH_NONE)
      found(self, var, touch);
  }
  for (uint32_t i = 0; i < n->region_count; i++)
    flow_touches(n->branches[i], found, self);
}
void flow_touches(const struct flow *f, void (*found)(void *, uint32_t, enum touch), void *self) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id])
      node_touches(f->nodes.items[id], found, self);
}

static void note_update(void *self, uint32_t var, enum touch touch) {
  (void)var;
  *(bool *)self = *(bool *)self || touch == TOUCH_UPDATE;
}
bool node_updates_inside(const struct flow_node *n) {
  bool updates = false;
  node_touches(n, note_update, &updates);
  return updates;
}

typedef VEC(uint32_t) var_list;
static void note_variable(void *self, uint32_t var, enum touch touch) {
  (void)touch;
  vec_push((var_list *)self, var);
}
bool nodes_share_variable(const struct flow_node *a, const struct flow_node *b) {
  var_list of_a = {0}, of_b = {0};
  bool share = false;
  node_touches(a, note_variable, &of_a);
  node_touches(b, note_variable, &of_b);
  for (uint32_t i = 0; i < of_a.count && !share; i++)
    for (uint32_t k = 0; k < of_b.count && !share; k++)
      share = of_a.items[i] == of_b.items[k];
  vec_free(&of_a);
  vec_free(&of_b);
  return share;
}

bool node_is_call(const struct flow_node *n, const char *host) { return n && n->op == FLOW_HOST && strcmp(n->host, host) == 0; }
bool node_is_free_call(const struct flow_node *n, const char *host) { return node_is_call(n, host) && !n->guard_count; }
const struct attr_value *node_call_attr(const struct flow_node *n, const char *name) {
  for (uint32_t i = 0; i < n->attr_count; i++)
    if (strcmp(n->attrs[i].name, name) == 0)
      return &n->attrs[i].value;
  return NULL;
}
bool node_calls(const struct flow_node *n) {
  if (n->op == FLOW_HOST)
    return true;
  for (uint32_t r = 0; r < n->region_count; r++)
    for (flow_id id = 1; id < n->branches[r]->nodes.count; id++)
      if (n->branches[r]->nodes.items[id] && node_calls(n->branches[r]->nodes.items[id]))
        return true;
  return false;
}

/* A round (runtime/host/host.def) drops what is given up, and knows what comes twice. */
static bool is_round(const char *host) {
  static const char *const rounds[] = {
#define HOST(name, function)
#define PART(name, function)
#define USES(name, part)
#define ROUND(name, function) #name,
#include "runtime/host/host.def"
#undef HOST
#undef PART
#undef USES
#undef ROUND
  };
  for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++)
    if (strcmp(rounds[i], host) == 0)
      return true;
  return false;
}

bool node_changes(const struct flow_node *n) {
  if (n->op == FLOW_HOST)
    return (n->stateful || n->blocks) && !is_round(n->host);
  if (node_updates(n))
    return true;
  for (uint32_t r = 0; r < n->region_count; r++)
    for (flow_id id = 1; id < n->branches[r]->nodes.count; id++)
      if (n->branches[r]->nodes.items[id] && node_changes(n->branches[r]->nodes.items[id]))
        return true;
  return false;
}

/* ---- new nodes ---- */

struct flow_node *flow_append(struct flow *f, enum flow_op op, const struct flow_node *named, uint32_t task, flow_id *id) {
  struct flow_node *n = flow_add_node(f, op, named->name, named->tf_op, task, id);
  n->place = named->place;
  return n;
}

void flow_take_back(struct flow *f, uint32_t nodes, uint32_t values) {
  while (f->nodes.count > nodes) {
    struct flow_node *n = f->nodes.items[--f->nodes.count];
    vec_free(&n->inputs);
    vec_free(&n->outputs);
    vec_free(&n->controls);
  }
  f->values.count = values;
}
value_id flow_append_output(struct flow *f, struct flow_node *node, flow_id id, struct flow_value like) {
  value_id v = flow_add_value(f, like.dtype, like.rank, like.dims);
  f->values.items[v].producer = id;
  f->values.items[v].index = node->outputs.count;
  f->values.items[v].any_rank = like.any_rank;
  vec_push(&node->outputs, v);
  return v;
}

void node_guard(struct flow_node *n, struct flow_guard guard, struct arena *arena) {
  struct flow_guard *guards = ARENA_ARRAY(arena, struct flow_guard, n->guard_count + 1);
  guards[0] = guard;
  if (n->guard_count)
    memcpy(guards + 1, n->guards, n->guard_count * sizeof *guards);
  n->guards = guards;
  n->guard_count++;
}

void node_follow(struct flow_node *n, flow_id before) {
  if (!node_follows(n, before))
    vec_push(&n->controls, before);
}

void node_follow_no_more(struct flow_node *n, flow_id before) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n->controls.count; i++)
    if (n->controls.items[i] != before)
      n->controls.items[kept++] = n->controls.items[i];
  n->controls.count = kept;
}

bool *flow_followed(const struct flow *f) {
  bool *followed = calloc(f->nodes.count + 1, 1);
  for (flow_id id = 1; id < f->nodes.count; id++)
    for (uint32_t i = 0; f->nodes.items[id] && i < f->nodes.items[id]->controls.count; i++)
      followed[f->nodes.items[id]->controls.items[i]] = true;
  return followed;
}
static void follow_instead(const struct flow *f, struct flow_node *n, const struct flow_node *gone, bool *followed) {
  for (uint32_t i = 0; i < gone->controls.count + gone->inputs.count; i++) {
    bool is_control = i < gone->controls.count;
    flow_id before = is_control ? gone->controls.items[i] : f->values.items[gone->inputs.items[i - gone->controls.count]].producer;
    if (!before)
      continue;
    node_follow(n, before);
    followed[before] = true;
  }
}
void flow_drop_node(struct flow *f, flow_id id, bool *followed) {
  const struct flow_node *gone = f->nodes.items[id];
  for (flow_id i = id + 1; followed[id] && i < f->nodes.count; i++) {
    struct flow_node *n = f->nodes.items[i];
    if (!n || !node_follows(n, id))
      continue;
    node_follow_no_more(n, id);
    follow_instead(f, n, gone, followed);
  }
  f->nodes.items[id] = NULL;
}

void node_make_noop(struct flow_node *n) {
  n->op = FLOW_NOOP;
  n->inputs.count = n->outputs.count = 0;
  n->stateful = n->is_target = n->blocks = false;
}

void node_take_told(struct flow *f, struct flow_node *n, struct kernel *kernel, const int64_t *told, uint32_t count) {
  uint32_t own = n->kernel->size_count;
  dim *sizes = ARENA_ARRAY(f->arena, dim, own + count + 1);
  if (own)
    memcpy(sizes, n->sizes, sizeof *sizes * own);
  for (uint32_t i = 0; i < count; i++)
    sizes[own + i] = dim_const(f->dims, told[i]);
  n->kernel = kernel;
  n->sizes = sizes;
}

/* ---- order ---- */

struct sorter {
  struct flow *flow;
  flow_id *number; /* per old node: its new number; 0: not there yet */
  flow_id *binder; /* per symbol: the first node that binds it */
  bool *busy, *seen;
  flow_id current;
  uint32_t symbols;
  VEC(struct flow_node *) nodes;
};

static void note_binder(void *self, uint32_t symbol) {
  struct sorter *s = self;
  if (!s->binder[symbol])
    s->binder[symbol] = s->current;
}

static void place_node(struct sorter *s, flow_id id);

static void place_binders(struct sorter *s, flow_id id) {
  VEC(flow_id) binders = {0};
  memset(s->seen, 0, s->symbols + 1);
  flow_node_symbols(s->flow, s->flow->nodes.items[id], s->seen);
  for (uint32_t i = 0; i < s->symbols; i++)
    if (s->seen[i] && s->binder[i] && s->binder[i] < id && !s->number[s->binder[i]])
      vec_push(&binders, s->binder[i]);
  for (uint32_t i = 0; i < binders.count; i++)
    place_node(s, binders.items[i]);
  vec_free(&binders);
}

static void place_node(struct sorter *s, flow_id id) {
  struct flow_node *n = s->flow->nodes.items[id];
  if (!n || s->number[id] || s->busy[id])
    return;
  s->busy[id] = true;
  for (uint32_t i = 0; i < node_input_count(n); i++)
    if (node_input(n, i))
      place_node(s, s->flow->values.items[node_input(n, i)].producer);
  for (uint32_t i = 0; i < n->controls.count; i++)
    place_node(s, n->controls.items[i]);
  place_binders(s, id);
  s->number[id] = s->nodes.count;
  vec_push(&s->nodes, n);
}

void flow_sort(struct flow *f) { flow_sort_last(f, NULL); }

void flow_sort_last(struct flow *f, const bool *last) {
  struct sorter s = {.flow = f, .symbols = dims_symbol_count(f->dims)};
  s.number = calloc(f->nodes.count + 1, sizeof *s.number);
  s.binder = calloc(s.symbols + 1, sizeof *s.binder);
  s.busy = calloc(f->nodes.count + 1, 1);
  s.seen = calloc(s.symbols + 1, 1);
  vec_push(&s.nodes, NULL);
  for (s.current = 1; s.current < f->nodes.count; s.current++)
    if (f->nodes.items[s.current])
      flow_node_binds(f, f->nodes.items[s.current], note_binder, &s);
  for (flow_id id = 1; id < f->nodes.count && last; id++)
    if (!last[id])
      place_node(&s, id);
  for (flow_id id = 1; id < f->nodes.count; id++)
    place_node(&s, id);
  for (flow_id id = 1; id < s.nodes.count; id++)
    for (uint32_t i = 0; i < s.nodes.items[id]->controls.count; i++)
      s.nodes.items[id]->controls.items[i] = s.number[s.nodes.items[id]->controls.items[i]];
  for (value_id v = 1; v < f->values.count; v++)
    f->values.items[v].producer = s.number[f->values.items[v].producer];
  f->nodes.count = 0;
  for (uint32_t i = 0; i < s.nodes.count; i++)
    vec_push(&f->nodes, s.nodes.items[i]);
  vec_free(&s.nodes);
  free(s.number);
  free(s.binder);
  free(s.busy);
  free(s.seen);
}
