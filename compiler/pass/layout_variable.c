/* layout_variable.c: variables in panels: which may be, what that costs those who want them dense, and how they get them; see layout.h.
 *
 * A variable lies one way in all entries. It may lie in panels where every node that touches it reads it as a value, or gives it a whole
 * one: updates in place want the order of their gradients. Then reading it gives the panels; for whoever takes it otherwise a kernel
 * behind that brings them back, and what is assigned goes through a kernel in front. The runtime does the same for checkpoints. */
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/edit/part_walk.h"
#include "compiler/edit/region_trim.h"
#include "compiler/pass/layout_wish.h"

/* ---- which variables ---- */

static bool has_elements(const struct flow *f, value_id v, int64_t wanted) {
  bool is_open = false;
  int64_t bytes = flow_value_bytes(f, v, &is_open);
  return !is_open && bytes == wanted * (int64_t)dtype_size(f->values.items[v].dtype);
}
static bool buffer_has_elements(const struct kernel_buffer *b, int64_t wanted) {
  int64_t count = 1;
  for (int d = 0; d < b->rank; d++) {
    if (DIM_IS_SIZE(b->dims[d]))
      return false;
    count *= b->dims[d];
  }
  return count == wanted;
}
static int64_t variable_elements(const struct flow_var *var) {
  int64_t count = 1;
  for (int d = 0; d < var->rank; d++)
    count *= var->dims[d];
  return count;
}
/* The node is a kernel that writes the whole variable, and nothing else. */
static bool writes_whole(const struct flow_node *n, uint32_t var, int64_t elements) {
  uint32_t outputs = 0;
  if (n->op != FLOW_KERNEL || n->outputs.count)
    return false;
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++) {
    const struct kernel_buffer *b = &n->kernel->buffers.items[i];
    outputs += b->mode == BUFFER_OUT;
    if (n->args[i].var && (n->args[i].var != var + 1 || b->mode != BUFFER_OUT || !buffer_has_elements(b, elements)))
      return false;
  }
  return outputs == 1;
}
static bool may_touch(const struct build *b, const struct flow *f, const struct flow_node *n, uint32_t var) {
  int64_t elements = variable_elements(&b->vars.items[var]);
  switch (n->op) {
  case FLOW_READ:
  case FLOW_VARIABLE: return true;
  case FLOW_ASSIGN: return has_elements(f, n->inputs.items[0], elements);
  default: return writes_whole(n, var, elements);
  }
}

static void find_touchers(struct layouter *l, struct scope *s) {
  for (flow_id id = 1; id < s->flow->nodes.count; id++) {
    const struct flow_node *n = s->flow->nodes.items[id];
    uint32_t var;
    for (uint32_t i = 0; n && i < node_touch_count(n); i++) {
      if (node_touch(n, i, &var) == TOUCH_NONE)
        continue;
      l->held[var].may = l->held[var].may && may_touch(l->build, s->flow, n, var);
      vec_push(&l->held[var].touchers, ((struct toucher){s, id}));
    }
  }
}
static void count_touch(void *self, uint32_t var, enum touch touch) {
  (void)touch;
  ((uint32_t *)self)[var]++;
}
static status count_touches(struct build *b, const struct part_ref *part, void *self) {
  (void)b;
  flow_touches(part->flow, count_touch, self);
  return OK;
}
void layout_find_held(struct layouter *l) {
  struct build *b = l->build;
  uint32_t *all = ARENA_ARRAY(&b->arena, uint32_t, b->vars.count + 1);
  l->held = ARENA_ARRAY(&b->arena, struct held, b->vars.count + 1);
  for (uint32_t i = 0; i < b->vars.count; i++)
    l->held[i].may = b->vars.items[i].has_shape && !b->vars.items[i].zero_initial;
  for (uint32_t i = 0; i < l->scopes.count; i++)
    find_touchers(l, l->scopes.items[i]);
  (void)!part_each(b, count_touches, all);
  for (uint32_t i = 0; i < b->vars.count; i++) /* not what conditions of loops touch, nor what functions of calls do: counted twice */
    l->held[i].may = l->held[i].may && l->held[i].touchers.count == all[i];
}
void layout_free_held(struct layouter *l) {
  for (uint32_t i = 0; i < l->build->vars.count; i++)
    vec_free(&l->held[i].touchers);
}

/* ---- what it costs ---- */

static bool is_reader(const struct wish *w, const struct flow_node *n, value_id v) {
  for (uint32_t i = 0; i < w->readers.count; i++)
    if (w->readers.items[i].node == n && w->readers.items[i].value == v)
      return true;
  return false;
}
static uint32_t count_results(const struct flow *f, value_id v) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < f->results.count; i++)
    count += f->results.items[i] == v;
  return count;
}
/* Who of an entry takes the variable dense. Where nobody reads it in panels, it is handed out now and then: fetched, saved. */
struct asked {
  const struct wish *wish;
  bool is_step; /* the entry has readers in panels */
};
static bool nodes_want_dense(const struct asked *a, const struct flow *f, value_id v);
/* The loop hands it on to readers alone. */
static bool loop_wants_dense(const struct asked *a, const struct flow *f, const struct flow_node *n, value_id v) {
  const struct flow *condition = n->branches[0], *body = n->branches[1];
  flow_id user;
  for (uint32_t i = 0; i < n->inputs.count; i++) {
    if (n->inputs.items[i] != v)
      continue;
    if (!loop_is_regular(n) || i >= loop_var_count(n) || !loop_hands_on(n, i) || flow_use_count(f, n->outputs.items[i], &user) ||
        flow_use_count(condition, condition->params.items[i], &user) || count_results(body, body->params.items[i]) > 1 ||
        nodes_want_dense(a, body, body->params.items[i]))
      return true;
  }
  return false;
}
static bool wants_dense(const struct asked *a, const struct flow *f, value_id v) {
  return count_results(f, v) || nodes_want_dense(a, f, v);
}
static bool node_wants_dense(const struct asked *a, const struct flow *f, const struct flow_node *n, value_id v) {
  switch (n->op) {
  case FLOW_ALIAS: return wants_dense(a, f, n->outputs.items[0]);
  case FLOW_WHILE: return loop_wants_dense(a, f, n, v);
  case FLOW_FETCH:
  case FLOW_HOST: return a->is_step;
  default: return !is_reader(a->wish, n, v);
  }
}
/* Some node takes the value that does not read it in panels. */
static bool nodes_want_dense(const struct asked *a, const struct flow *f, value_id v) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && node_takes(f->nodes.items[id], v) && node_wants_dense(a, f, f->nodes.items[id], v))
      return true;
  return false;
}

static bool entry_has_readers(const struct wish *w, const struct entry *e) {
  for (uint32_t i = 0; i < w->readers.count; i++)
    if (w->readers.items[i].scope->entry == e)
      return true;
  return false;
}
static const struct flow_node *node_of(const struct toucher *t) { return t->scope->flow->nodes.items[t->node]; }
static bool entry_reads(const struct held *h, const struct entry *e) {
  for (uint32_t i = 0; i < h->touchers.count; i++)
    if (h->touchers.items[i].scope->entry == e && node_of(&h->touchers.items[i])->op == FLOW_READ)
      return true;
  return false;
}
/* What takes it dense, or gives it. An entry that does not look at what it gives (`init`, one that loads weights) runs now and then. */
static bool wants_turning(const struct wish *w, const struct held *h, const struct toucher *t) {
  const struct flow_node *n = node_of(t);
  const struct asked a = {w, entry_has_readers(w, t->scope->entry)};
  if (n->op == FLOW_READ)
    return wants_dense(&a, t->scope->flow, n->outputs.items[0]);
  return n->op != FLOW_VARIABLE && entry_reads(h, t->scope->entry);
}
/* In front of a loop a variable may be missing: nothing can be made of it there. */
static bool may_be_missing(const struct wish *w, const struct toucher *t) {
  const struct flow_node *n = node_of(t);
  return n->op == FLOW_READ && n->imm == READ_IN_LOOP && wants_dense(&(struct asked){w, true}, t->scope->flow, n->outputs.items[0]);
}
double layout_dense_cycles(const struct layouter *l, const struct wish *w) {
  const struct held *h = &l->held[w->source.var - 1];
  double sum = 0, once = layout_pack_cycles(l, &w->panels, w->dtype);
  for (uint32_t i = 0; i < h->touchers.count; i++) {
    const struct toucher *t = &h->touchers.items[i];
    if (may_be_missing(w, t))
      return -1;
    sum += wants_turning(w, h, t) ? once * layout_runs(t->scope, NULL) : 0;
  }
  return sum;
}

/* ---- making ---- */

/* A node of the scope beside `like`: it runs where that does, on the same task. */
static struct flow_node *append_beside(struct scope *s, enum flow_op op, const struct flow_node *like, flow_id *id) {
  struct flow_node *n = flow_append(s->flow, op, like, like->task, id);
  n->guards = like->guards;
  n->guard_count = like->guard_count;
  s->has_new = true;
  for (struct scope *around = s; around; around = around->outer) /* regions are trimmed from outside */
    around->has_held = true;
  return n;
}
static struct flow_value dense_value(const struct wish *w, struct dim_table *dims) {
  struct flow_value x = {.dtype = w->dtype, .rank = w->panels.rank};
  for (int i = 0; i < x.rank; i++)
    x.dims[i] = dim_const(dims, w->panels.dims[i]);
  return x;
}
static bool is_same_shape(const struct flow_value *a, const struct flow_value *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank) == 0;
}
/* The value under another shape. */
static value_id reshaped(struct scope *s, const struct flow_node *like, value_id v, struct flow_value shape) {
  if (is_same_shape(&s->flow->values.items[v], &shape))
    return v;
  flow_id id;
  struct flow_node *n = append_beside(s, FLOW_ALIAS, like, &id);
  vec_push(&n->inputs, v);
  return flow_append_output(s->flow, n, id, shape);
}
/* The value, which others take, is made by this node from now on. */
static void take_over(struct flow *f, struct flow_node *n, flow_id id, value_id v) {
  vec_push(&n->outputs, v);
  f->values.items[v].producer = id;
  f->values.items[v].index = 0;
}
/* A kernel from one value to another, or to a variable. */
static void bind_kernel(struct flow *f, struct flow_node *n, struct kernel *k, value_id from, struct flow_arg to) {
  n->kernel = k;
  n->args = ARENA_ARRAY(f->arena, struct flow_arg, 2);
  n->args[0] = (struct flow_arg){.value = from};
  n->args[1] = to;
  vec_push(&n->inputs, from);
}
/* What the node reads are the panels; the dense value, which others take, is made of them. */
static void hold_read(struct layouter *l, struct wish *w, struct scope *s, struct flow_node *read) {
  struct flow *f = s->flow;
  flow_id id;
  value_id dense = read->outputs.items[0], packed = flow_add_value(f, w->dtype, 0, NULL), made = dense;
  struct flow_value panels = layout_value_of(&w->panels, w->dtype, f->dims), unpacked = dense_value(w, f->dims);
  panels.producer = f->values.items[dense].producer;
  f->values.items[packed] = panels;
  read->outputs.items[0] = packed;
  if (!is_same_shape(&f->values.items[dense], &unpacked)) {
    made = flow_add_value(f, w->dtype, unpacked.rank, unpacked.dims);
    struct flow_node *alias = append_beside(s, FLOW_ALIAS, read, &id);
    vec_push(&alias->inputs, made);
    take_over(f, alias, id, dense);
  }
  struct flow_node *back = append_beside(s, FLOW_KERNEL, read, &id);
  bind_kernel(f, back, panels_back_kernel(&w->panels, w->dtype, f->arena), packed, (struct flow_arg){.value = made});
  take_over(f, back, id, made);
  vec_push(&w->placed, ((struct placed){s, dense, packed}));
  layout_note(l, w, s, read, packed);
}
static void hold_assign(struct wish *w, struct scope *s, struct flow_node *assign) {
  struct flow *f = s->flow;
  flow_id id;
  value_id dense = reshaped(s, assign, assign->inputs.items[0], dense_value(w, f->dims));
  struct flow_node *n = append_beside(s, FLOW_KERNEL, assign, &id);
  value_id packed = flow_append_output(f, n, id, layout_value_of(&w->panels, w->dtype, f->dims));
  bind_kernel(f, n, panels_kernel(&w->panels, w->dtype, f->arena), dense, (struct flow_arg){.value = packed});
  assign->inputs.items[0] = packed;
}
/* The node's kernel, in a node of its own, and there it writes a value; returns that. */
static value_id move_kernel(struct scope *s, struct flow_node *from) {
  struct flow *f = s->flow;
  flow_id id;
  uint32_t out = 0;
  struct flow_node *n = append_beside(s, FLOW_KERNEL, from, &id);
  n->kernel = from->kernel;
  n->args = from->args;
  n->sizes = from->sizes;
  n->inputs = from->inputs;
  memset(&from->inputs, 0, sizeof from->inputs);
  for (uint32_t i = 0; i < from->controls.count; i++)
    node_follow(n, from->controls.items[i]);
  while (n->kernel->buffers.items[out].mode != BUFFER_OUT)
    out++;
  const struct kernel_buffer *b = &n->kernel->buffers.items[out];
  struct flow_value whole = {.dtype = b->dtype, .rank = b->rank};
  for (int d = 0; d < b->rank; d++)
    whole.dims[d] = dim_const(f->dims, b->dims[d]);
  value_id v = flow_append_output(f, n, id, whole);
  n->args[out] = (struct flow_arg){.value = v};
  return v;
}
/* Behind what wrote the variable the node itself, behind which others come, brings that into panels. */
static void hold_write(struct wish *w, struct scope *s, struct flow_node *n) {
  value_id dense = reshaped(s, n, move_kernel(s, n), dense_value(w, s->flow->dims));
  n->sizes = NULL;
  bind_kernel(s->flow, n, panels_kernel(&w->panels, w->dtype, s->flow->arena), dense, (struct flow_arg){.var = w->source.var});
}
void layout_hold(struct layouter *l, struct wish *w) {
  uint32_t var = w->source.var - 1;
  const struct held *h = &l->held[var];
  l->build->vars.items[var].panels = arena_copy(&l->build->arena, &w->panels, sizeof w->panels);
  for (uint32_t i = 0; i < h->touchers.count; i++) {
    struct scope *s = h->touchers.items[i].scope;
    struct flow_node *n = s->flow->nodes.items[h->touchers.items[i].node];
    if (n->op == FLOW_READ)
      hold_read(l, w, s, n);
    else if (n->op == FLOW_ASSIGN)
      hold_assign(w, s, n);
    else if (n->op == FLOW_KERNEL)
      hold_write(w, s, n);
  }
}

/* ---- what nobody takes ---- */

static bool is_needed(const struct flow *f, flow_id id) {
  const struct flow_node *n = f->nodes.items[id];
  flow_id user;
  bool needed = n->outputs.count == 0 || n->is_target || n->stateful || node_updates(n);
  for (uint32_t i = 0; !needed && i < n->outputs.count; i++)
    needed = flow_use_count(f, n->outputs.items[i], &user);
  for (flow_id other = 1; !needed && other < f->nodes.count; other++)
    needed = f->nodes.items[other] && node_follows(f->nodes.items[other], id);
  return needed;
}
/* The node, and what it alone took. */
static void drop_unneeded(struct flow *f, flow_id id) {
  const struct flow_node *n = f->nodes.items[id];
  if (!n || (n->op != FLOW_ALIAS && n->op != FLOW_KERNEL) || is_needed(f, id))
    return;
  f->nodes.items[id] = NULL;
  for (uint32_t i = 0; i < n->inputs.count; i++)
    drop_unneeded(f, f->values.items[n->inputs.items[i]].producer);
}
static bool is_alias(const struct flow_node *n) { return n && n->op == FLOW_ALIAS; }
static void drop_turned(struct scope *s) {
  struct flow *f = s->flow;
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (is_alias(f->nodes.items[id]))
      drop_unneeded(f, id);
  for (flow_id id = s->nodes; id < f->nodes.count; id++)
    drop_unneeded(f, id);
}
void layout_sweep(struct layouter *l) {
  for (uint32_t i = 0; i < l->scopes.count; i++)
    while (!l->scopes.items[i]->outer && l->scopes.items[i]->has_held && flow_trim_regions(l->scopes.items[i]->flow))
      ;
  for (uint32_t i = 0; i < l->scopes.count; i++)
    if (l->scopes.items[i]->has_held)
      drop_turned(l->scopes.items[i]);
}
