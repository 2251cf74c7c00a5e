/* regions.c: see regions.h. */
#include "compiler/edit/regions.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_copy.h"
#include "compiler/edit/flow_edit.h"
#include "compiler/edit/unroll.h"

/* ---- reads ---- */

struct touches {
  bool *read, *updated; /* per variable */
};
static void note(void *self, uint32_t var, enum touch touch) {
  struct touches *t = self;
  t->read[var] = t->read[var] || touch == TOUCH_READ;
  t->updated[var] = t->updated[var] || touch == TOUCH_UPDATE;
}

/* The first value that a region reads of a variable; NO_VALUE: none, or one of no fixed size. */
static value_id value_read(const struct build *b, const struct flow *f, uint32_t var) {
  const struct flow_var *v = &b->vars.items[var];
  for (flow_id id = 1; id < f->nodes.count && v->has_shape; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_READ && f->nodes.items[id]->var == var)
      return f->nodes.items[id]->outputs.items[0];
  return NO_VALUE;
}

/* In the region the variable is what a parameter holds. */
static void read_parameter(struct flow *f, uint32_t var, value_id param) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && n->op == FLOW_KERNEL && i < n->kernel->buffers.count; i++)
      if (n->args[i].var == var + 1) {
        n->args[i] = (struct flow_arg){.value = param};
        vec_push(&n->inputs, param);
      }
    if (!n || n->op != FLOW_READ || n->var != var)
      continue;
    flow_replace_uses(f, n->outputs.items[0], param);
    f->values.items[n->outputs.items[0]].producer = 0;
    n->op = FLOW_NOOP; /* others may come after it */
    n->outputs.count = 0;
  }
}

static value_id add_param(struct flow *f, struct flow_value like) {
  value_id v = flow_add_value(f, like.dtype, like.rank, like.dims);
  f->values.items[v].index = f->params.count;
  vec_push(&f->params, v);
  return v;
}

/* The variable is read before node `id` and handed to its regions. */
static void hand_in(struct flow *f, flow_id id, uint32_t var, struct flow_value like) {
  struct flow_node *n = f->nodes.items[id];
  flow_id read;
  struct flow_node *r = flow_append(f, FLOW_READ, n, n->task, &read);
  r->tf_op = "ReadVariableOp";
  r->var = var;
  r->guards = n->guards;
  r->guard_count = n->guard_count;
  for (uint32_t i = 0; i < n->controls.count; i++)
    vec_push(&r->controls, n->controls.items[i]);
  like.any_rank = false;
  vec_push(&n->inputs, flow_append_output(f, r, read, like));
  for (uint32_t i = 0; i < n->region_count; i++) {
    value_id param = add_param(n->branches[i], like);
    read_parameter(n->branches[i], var, param);
    if (n->op == FLOW_WHILE && i == 1)
      vec_push(&n->branches[i]->results, param);
  }
  if (n->op == FLOW_WHILE)
    flow_append_output(f, n, id, like);
}

static void hoist_reads(struct build *b, struct flow *f) {
  struct touches t = {calloc(b->vars.count + 1, 1), calloc(b->vars.count + 1, 1)};
  uint32_t count = f->nodes.count;
  for (flow_id id = 1; id < count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!n || !n->region_count)
      continue;
    memset(t.read, 0, b->vars.count);
    memset(t.updated, 0, b->vars.count);
    for (uint32_t i = 0; i < n->region_count; i++) {
      hoist_reads(b, n->branches[i]);
      flow_touches(n->branches[i], note, &t);
    }
    for (uint32_t var = 0; var < b->vars.count; var++) {
      value_id v = 0;
      uint32_t i = 0;
      for (; t.read[var] && !t.updated[var] && !v && i < n->region_count; i++)
        v = value_read(b, n->branches[i], var);
      if (v)
        hand_in(f, id, var, n->branches[i - 1]->values.items[v]);
    }
  }
  if (f->nodes.count > count)
    flow_sort(f);
  free(t.read);
  free(t.updated);
}

/* ---- branches ---- */

struct unfolding {
  struct flow *flow;
  struct flow_node *node; /* the `if` */
  value_id predicate;
  VEC(flow_id) effects; /* of its branches */
};

static void copy_node(struct unfolding *u, struct flow_copy *c, flow_id of, const struct flow_guard *guards) {
  flow_id id;
  struct flow_node *to = flow_copy_node(c, of, &id);
  if (to->op != FLOW_CONST)
    flow_copy_guards(c, to, guards, u->node->guard_count + 1);
  bool effect = to->stateful || node_touch_count(to) || to->region_count || to->op == FLOW_NOOP;
  for (uint32_t i = 0; effect && i < u->node->controls.count; i++)
    node_follow(to, u->node->controls.items[i]);
  if (effect)
    vec_push(&u->effects, id);
}

/* The branch's nodes, guarded; its results in `results`. */
static void copy_branch(struct unfolding *u, const struct flow *branch, bool expected, value_id *results) {
  struct flow_copy c;
  struct flow_guard *guards = ARENA_ARRAY(u->flow->arena, struct flow_guard, u->node->guard_count + 1);
  for (uint32_t i = 0; i < u->node->guard_count; i++)
    guards[i] = u->node->guards[i];
  guards[u->node->guard_count] = (struct flow_guard){u->predicate, expected};
  flow_copy_begin(&c, branch, u->flow);
  for (uint32_t i = 0; i < branch->params.count; i++)
    c.value[branch->params.items[i]] = u->node->inputs.items[i + 1];
  for (flow_id id = 1; id < branch->nodes.count; id++)
    if (branch->nodes.items[id])
      copy_node(u, &c, id, guards);
  for (uint32_t i = 0; i < branch->results.count; i++)
    results[i] = c.value[branch->results.items[i]];
  flow_copy_end(&c);
}

static void merge_result(struct unfolding *u, uint32_t i, value_id when_true, value_id when_false) {
  flow_id id;
  value_id out = u->node->outputs.items[i];
  struct flow_node *m = flow_append(u->flow, FLOW_MERGE, u->node, u->node->task, &id);
  m->guards = u->node->guards;
  m->guard_count = u->node->guard_count;
  vec_push(&m->inputs, u->predicate);
  vec_push(&m->inputs, when_false);
  vec_push(&m->inputs, when_true);
  vec_push(&m->outputs, out);
  u->flow->values.items[out].producer = id;
  u->flow->values.items[out].index = 0;
}

/* Only one side runs. Their updates of a variable are one chain for whoever asks what it holds behind both. */
static void order_sides(struct unfolding *u, uint32_t first_of_second) {
  for (uint32_t i = first_of_second; i < u->effects.count; i++) {
    struct flow_node *second = u->flow->nodes.items[u->effects.items[i]];
    for (uint32_t k = 0; node_updates_inside(second) && k < first_of_second; k++) {
      const struct flow_node *first = u->flow->nodes.items[u->effects.items[k]];
      if (node_updates_inside(first) && nodes_share_variable(first, second))
        node_follow(second, u->effects.items[k]);
    }
  }
}

static void unfold(struct flow *f, flow_id at) {
  struct unfolding u = {.flow = f, .node = f->nodes.items[at], .predicate = f->nodes.items[at]->inputs.items[0]};
  uint32_t results = u.node->outputs.count;
  value_id *side[2] = {calloc(results + 1, sizeof(value_id)), calloc(results + 1, sizeof(value_id))};
  copy_branch(&u, u.node->branches[0], true, side[0]);
  uint32_t sides = u.effects.count;
  copy_branch(&u, u.node->branches[1], false, side[1]);
  order_sides(&u, sides);
  for (uint32_t i = 0; i < results; i++)
    merge_result(&u, i, side[0][i], side[1][i]);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && i < n->controls.count; i++) {
      if (n->controls.items[i] != at)
        continue;
      n->controls.items[i--] = vec_last(&n->controls);
      n->controls.count--;
      for (uint32_t k = 0; k < u.effects.count + u.node->controls.count; k++)
        node_follow(n, k < u.effects.count ? u.effects.items[k] : u.node->controls.items[k - u.effects.count]);
    }
  }
  f->nodes.items[at] = NULL;
  free(side[0]);
  free(side[1]);
  vec_free(&u.effects);
}

static bool can_unfold(const struct flow *f, const struct flow_node *n) {
  return n->op == FLOW_IF && n->region_count == 2 && f->values.items[n->inputs.items[0]].dtype == DTYPE_BOOL;
}

void regions_open(struct build *b, struct flow *f) {
  hoist_reads(b, f);
  bool any = false;
  for (flow_id id = 1; id < f->nodes.count; id++) { /* those that come out of regions follow at the end */
    const struct flow_node *n = f->nodes.items[id];
    if (!n || !n->region_count || !node_updates_inside(n))
      continue;
    bool unfolds = can_unfold(f, n), unrolls = n->op == FLOW_WHILE && loop_may_unroll(f, n);
    if (unfolds)
      unfold(f, id);
    if (unrolls)
      loop_unroll(f, id);
    any = any || unfolds || unrolls;
  }
  if (any)
    flow_sort(f);
}
