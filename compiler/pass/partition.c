/* partition.c: cuts each entry's flow into one flow for each task, in the same order of nodes.
 *
 * A value that another task uses is sent where its first user there stands in the order of nodes and received right before that use; a
 * control edge across tasks becomes the transfer of an empty tensor; a symbol that a task needs and cannot bind from what it has is
 * sent as a scalar by the task that binds it. Every transfer has a number that is unique in the entry.
 *
 * What cannot be sent (lists, optionals, stacks: variants and resources) stays where it was made, and who takes it runs there, whatever
 * device it was given. */
#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/pass/pass.h"

struct part {
  uint32_t task;
  struct flow *flow;
  value_id *value; /* per value of the whole flow: its id here, or 0 */
  flow_id *node;   /* per node: its id here, or what received its control edge; 0 */
  bool *bound;     /* per symbol */
};
struct cut {
  struct build *build;
  struct entry *entry;
  struct flow *whole;
  VEC(struct part) parts;
  uint32_t *home;  /* per node: its task after the driver has been merged */
  flow_id *binder; /* per symbol */
  uint32_t symbols;
  int64_t transfers;
  flow_id current;
};

/* Where a node runs: in a build of one task, and in replicated entries, the driver is that task itself. */
static uint32_t home_of(const struct cut *c, const struct flow_node *n) {
  if (n->task != TASK_DRIVER)
    return n->task;
  if (c->build->cluster.tasks.count == 1)
    return 0;
  return c->entry->replicated ? TASK_SELF : TASK_DRIVER;
}

/* Another task than `home` that has a variable which the node touches. */
struct elsewhere {
  const struct cut *c;
  uint32_t home;
  bool is_found;
};
static void note_elsewhere(void *self, uint32_t var, enum touch touch) {
  struct elsewhere *e = self;
  uint32_t task = e->c->build->vars.items[var].task;
  (void)touch;
  e->is_found = e->is_found || (task != e->home && task != TASK_SELF);
}
static bool touches_elsewhere(const struct cut *c, const struct flow_node *n, uint32_t home) {
  struct elsewhere e = {c, home, false};
  node_touches(n, note_elsewhere, &e);
  return e.is_found;
}
/* The task of node `id`, which may yield to one that made what cannot be sent. */
static status find_home(struct cut *c, flow_id id) {
  const struct flow_node *n = c->whole->nodes.items[id], *first = NULL;
  uint32_t home = home_of(c, n);
  for (uint32_t i = 0; i < n->inputs.count; i++) {
    const struct flow_value *x = &c->whole->values.items[n->inputs.items[i]];
    const struct flow_node *maker = c->whole->nodes.items[x->producer];
    if ((x->dtype != DTYPE_VARIANT && x->dtype != DTYPE_RESOURCE) || !maker || (x->data && maker->op == FLOW_CONST))
      continue;
    if (first && c->home[x->producer] != home)
      return fail(UNIMPLEMENTED, "%s (%s) takes a %s that %s made on one task and a %s that %s made on another: neither can be sent",
                  n->name, n->tf_op, dtype_name(x->dtype), first->name, dtype_name(x->dtype), maker->name);
    first = maker;
    home = c->home[x->producer];
  }
  if (first && home != home_of(c, n) && touches_elsewhere(c, n, home))
    return fail(UNIMPLEMENTED, "%s (%s) takes what %s made on another task than its variables: it cannot be sent; give both one device",
                n->name, n->tf_op, first->name);
  c->home[id] = home;
  return OK;
}

static struct part *part_of(struct cut *c, uint32_t task) {
  for (uint32_t i = 0; i < c->parts.count; i++)
    if (c->parts.items[i].task == task)
      return &c->parts.items[i];
  struct arena *a = &c->build->arena;
  struct part p = {.task = task, .flow = flow_create(a, c->whole->dims)};
  p.value = ARENA_ARRAY(a, value_id, c->whole->values.count);
  p.node = ARENA_ARRAY(a, flow_id, c->whole->nodes.count);
  p.bound = ARENA_ARRAY(a, bool, c->symbols + 1);
  vec_push(&c->parts, p);
  return &vec_last(&c->parts);
}

/* ---- values ---- */

static value_id copy_value(struct cut *c, struct part *p, value_id v) {
  struct flow_value x = c->whole->values.items[v];
  value_id here = flow_add_value(p->flow, x.dtype, x.rank, x.dims);
  p->flow->values.items[here].data = x.data;
  p->flow->values.items[here].content = x.content;
  p->flow->values.items[here].any_rank = x.any_rank;
  p->value[v] = here;
  return here;
}

struct binder_note {
  struct part *part;
};
static void note_bound(void *self, uint32_t symbol) { ((struct binder_note *)self)->part->bound[symbol] = true; }

static void note_symbols(struct part *p, const struct flow_node *n) {
  struct binder_note note = {p};
  flow_node_binds(p->flow, n, note_bound, &note);
}

static value_id need_value(struct cut *c, struct part *p, value_id v);

/* The guards of a node of the whole flow, for a node in a part: the predicates must be known there. */
static void copy_guards(struct cut *c, uint32_t task, const struct flow_node *from, struct flow_node *to) {
  struct flow_guard *guards = ARENA_ARRAY(&c->build->arena, struct flow_guard, from->guard_count + 1);
  for (uint32_t i = 0; i < from->guard_count; i++)
    guards[i] = (struct flow_guard){need_value(c, part_of(c, task), from->guards[i].predicate), from->guards[i].expected};
  to->guards = guards;
  to->guard_count = from->guard_count;
}
static void need_guards(struct cut *c, uint32_t task, const struct flow_node *n) {
  for (uint32_t i = 0; i < n->guard_count; i++)
    need_value(c, part_of(c, task), n->guards[i].predicate);
}

static flow_id add_send(struct part *from, value_id value, const struct flow_node *why, uint32_t to, int64_t number) {
  flow_id id;
  struct flow_node *n = flow_add_node(from->flow, FLOW_SEND, why->name, why->tf_op, from->task, &id);
  vec_push(&n->inputs, value);
  n->imm = number;
  n->peer = to;
  n->stateful = true;
  return id;
}
static value_id add_recv(struct part *to, struct flow_value x, const struct flow_node *why, uint32_t from, int64_t number) {
  flow_id id;
  struct flow_node *n = flow_add_node(to->flow, FLOW_RECV, why->name, why->tf_op, to->task, &id);
  value_id v = flow_add_value(to->flow, x.dtype, x.rank, x.dims);
  vec_push(&n->outputs, v);
  n->imm = number;
  n->peer = from;
  to->flow->values.items[v].producer = id;
  note_symbols(to, n);
  return v;
}

/* A scalar that tells a symbol, made where the symbol is bound. */
static value_id symbol_value(struct cut *c, struct part *p, uint32_t symbol, const struct flow_node *why) {
  struct arena *a = &c->build->arena;
  struct kernel *k = kernel_create(a, "symbol");
  uint32_t o = kernel_add_buffer(k, DTYPE_INT64, BUFFER_OUT, 0, NULL);
  stmt_store(k, &k->body, o, 0, NULL, 0, expr_size(k, 0));
  flow_id id;
  struct flow_node *n = flow_add_node(p->flow, FLOW_KERNEL, why->name, why->tf_op, p->task, &id);
  value_id v = flow_add_value(p->flow, DTYPE_INT64, 0, NULL);
  p->flow->values.items[v].producer = id;
  n->kernel = k;
  n->args = ARENA_NEW(a, struct flow_arg);
  n->args[0].value = v;
  n->sizes = ARENA_NEW(a, dim);
  n->sizes[0] = dim_of_symbol(c->whole->dims, symbol);
  vec_push(&n->outputs, v);
  return v;
}

static void need_symbol(struct cut *c, uint32_t task, uint32_t symbol, const struct flow_node *why) {
  if (part_of(c, task)->bound[symbol] || !c->binder[symbol])
    return;
  if (c->binder[symbol] > c->current) /* of a feed, whose shape is only compared with what is computed later */
    return;
  uint32_t from = c->home[c->binder[symbol]];
  if (from == task)
    return;
  const struct flow_node *binder = c->whole->nodes.items[c->binder[symbol]];
  need_guards(c, from, binder); /* on a side of a cond that is not taken it has no value */
  need_guards(c, task, binder);
  int64_t number = c->transfers++;
  struct part *source = part_of(c, from);
  value_id told = symbol_value(c, source, symbol, why);
  copy_guards(c, from, binder, source->flow->nodes.items[source->flow->values.items[told].producer]);
  flow_id sent = add_send(source, told, why, task, number);
  copy_guards(c, from, binder, source->flow->nodes.items[sent]);
  struct part *p = part_of(c, task);
  value_id v = add_recv(p, (struct flow_value){.dtype = DTYPE_INT64}, why, from, number);
  copy_guards(c, task, binder, p->flow->nodes.items[p->flow->values.items[v].producer]);
  struct flow_node *bind = flow_add_node(p->flow, FLOW_BIND, why->name, why->tf_op, task, NULL);
  vec_push(&bind->inputs, v);
  uint32_t *binds = ARENA_NEW(&c->build->arena, uint32_t);
  *binds = symbol;
  bind->binds = binds;
  bind->bind_count = 1;
  copy_guards(c, task, binder, bind);
  p->bound[symbol] = true;
}

static void need_symbols_of(struct cut *c, uint32_t task, const struct flow_node *n) {
  bool *seen = calloc(c->symbols + 1, 1);
  flow_node_symbols(c->whole, n, seen);
  for (uint32_t s = 0; s < c->symbols; s++)
    if (seen[s] && c->binder[s] != c->current)
      need_symbol(c, task, s, n);
  free(seen);
}

/* A value in a part: made there, a constant copied there, or received. */
static value_id need_value(struct cut *c, struct part *p, value_id v) {
  if (p->value[v])
    return p->value[v];
  flow_id producer = c->whole->values.items[v].producer;
  const struct flow_node *maker = c->whole->nodes.items[producer];
  uint32_t task = p->task, from = c->home[producer];
  struct flow_value x = c->whole->values.items[v];
  if (x.data && maker->op == FLOW_CONST) { /* constants are everywhere */
    flow_id id;
    struct flow_node *n = flow_add_node(p->flow, FLOW_CONST, maker->name, maker->tf_op, task, &id);
    value_id here = copy_value(c, p, v);
    vec_push(&n->outputs, here);
    p->flow->values.items[here].producer = id;
    return here;
  }
  int64_t number = c->transfers++;
  need_guards(c, from, maker);
  need_guards(c, task, maker);
  struct part *source = part_of(c, from);
  flow_id sent = add_send(source, source->value[v], maker, task, number);
  copy_guards(c, from, maker, source->flow->nodes.items[sent]);
  p = part_of(c, task);
  p->value[v] = add_recv(p, x, maker, from, number);
  p->flow->values.items[p->value[v]].content = x.content;
  p->flow->values.items[p->value[v]].any_rank = x.any_rank;
  copy_guards(c, task, maker, p->flow->nodes.items[p->flow->values.items[p->value[v]].producer]);
  return p->value[v];
}

/* A control edge from another task: an empty tensor that is sent after the node has run. */
static flow_id need_control(struct cut *c, uint32_t task, flow_id before, const struct flow_node *why) {
  if (part_of(c, task)->node[before])
    return part_of(c, task)->node[before];
  uint32_t from = c->home[before];
  int64_t number = c->transfers++;
  struct part *source = part_of(c, from);
  flow_id id;
  struct flow_node *k = flow_add_node(source->flow, FLOW_CONST, why->name, why->tf_op, from, &id);
  dim zero = dim_const(c->whole->dims, 0);
  value_id v = flow_add_value(source->flow, DTYPE_FLOAT, 1, &zero);
  source->flow->values.items[v].producer = id;
  source->flow->values.items[v].data = "";
  vec_push(&k->outputs, v);
  id = add_send(source, v, why, task, number);
  vec_push(&source->flow->nodes.items[id]->controls, source->node[before]);
  struct part *p = part_of(c, task);
  value_id got = add_recv(p, source->flow->values.items[v], why, from, number);
  return p->node[before] = p->flow->values.items[got].producer;
}

/* ---- nodes ---- */

static void copy_node(struct cut *c, flow_id id) {
  const struct flow_node *n = c->whole->nodes.items[id];
  uint32_t task = c->home[id];
  need_symbols_of(c, task, n);
  for (uint32_t i = 0; i < n->inputs.count; i++)
    need_value(c, part_of(c, task), n->inputs.items[i]);
  for (uint32_t i = 0; i < n->controls.count; i++)
    need_control(c, task, n->controls.items[i], n);
  need_guards(c, task, n);
  struct part *p = part_of(c, task);
  flow_id here;
  struct flow_node *to = flow_add_node(p->flow, n->op, n->name, n->tf_op, task, &here);
  *to = *n;
  to->task = task;
  memset(&to->inputs, 0, sizeof to->inputs);
  memset(&to->outputs, 0, sizeof to->outputs);
  memset(&to->controls, 0, sizeof to->controls);
  for (uint32_t i = 0; i < n->inputs.count; i++)
    vec_push(&to->inputs, p->value[n->inputs.items[i]]);
  for (uint32_t i = 0; i < n->outputs.count; i++) {
    value_id v = copy_value(c, p, n->outputs.items[i]);
    p->flow->values.items[v].producer = here;
    p->flow->values.items[v].index = i;
    vec_push(&to->outputs, v);
  }
  for (uint32_t i = 0; i < n->controls.count; i++)
    vec_push(&to->controls, p->node[n->controls.items[i]]);
  if (n->op == FLOW_KERNEL) {
    to->args = arena_copy(&c->build->arena, n->args, sizeof *n->args * n->kernel->buffers.count);
    for (uint32_t i = 0; i < n->kernel->buffers.count; i++)
      if (to->args[i].value)
        to->args[i].value = p->value[n->args[i].value];
  }
  copy_guards(c, task, n, to);
  p->node[id] = here;
  note_symbols(p, to);
}

static void note_whole_binder(void *self, uint32_t symbol) {
  struct cut *c = self;
  if (!c->binder[symbol])
    c->binder[symbol] = c->current;
}

static status partition_entry(struct build *b, struct entry *e) {
  struct cut c = {.build = b, .entry = e, .whole = e->flow, .symbols = dims_symbol_count(e->flow->dims)};
  c.home = ARENA_ARRAY(&b->arena, uint32_t, e->flow->nodes.count);
  c.binder = ARENA_ARRAY(&b->arena, flow_id, c.symbols + 1);
  for (c.current = 1; c.current < e->flow->nodes.count; c.current++) {
    const struct flow_node *n = e->flow->nodes.items[c.current];
    if (!n)
      continue;
    TRY(find_home(&c, c.current));
    flow_node_binds(e->flow, n, note_whole_binder, &c);
  }
  for (c.current = 1; c.current < e->flow->nodes.count; c.current++)
    if (e->flow->nodes.items[c.current])
      copy_node(&c, c.current);
  if (c.parts.count == 0)
    part_of(&c, b->cluster.tasks.count == 1 ? 0 : e->replicated ? TASK_SELF : TASK_DRIVER);
  for (uint32_t i = 0; i < c.parts.count; i++) {
    struct part *p = &c.parts.items[i];
    vec_push(&e->parts, (struct entry_part){.task = p->task, .flow = p->flow});
  }
  vec_free(&c.parts);
  return OK;
}

status pass_partition(struct build *b) {
  for (uint32_t i = 0; i < b->entries.count; i++)
    TRY(partition_entry(b, &b->entries.items[i]));
  return OK;
}
