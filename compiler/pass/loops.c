/* loops.c: the pass `loops`: what its turns do not change is taken out of a `while`. */
#include "compiler/pass/loops.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/loop_form.h"
#include "compiler/pass/pass.h"
#include "compiler/edit/region_trim.h"

static void insert(value_id *items, uint32_t count, uint32_t at, value_id v) {
  memmove(items + at + 1, items + at, sizeof *items * (count - at));
  items[at] = v;
}

/* Each list is one longer: the new one stands at `at`, in front of the rows. */
static value_id add_param(struct flow *region, uint32_t at, struct flow_value like) {
  value_id v = flow_add_value(region, like.dtype, like.rank, like.dims);
  vec_push(&region->params, v);
  insert(region->params.items, region->params.count - 1, at, v);
  for (uint32_t i = at; i < region->params.count; i++)
    region->values.items[region->params.items[i]].index = i;
  return v;
}

value_id loop_add_invariant(struct flow *f, flow_id loop, value_id outer) {
  struct flow_node *n = f->nodes.items[loop];
  struct flow_value like = f->values.items[outer];
  uint32_t at = loop_var_count(n);
  vec_push(&n->inputs, outer);
  insert(n->inputs.items, n->inputs.count - 1, at, outer);
  add_param(n->branches[0], at, like);
  value_id param = add_param(n->branches[1], at, like);
  vec_push(&n->branches[1]->results, param);
  insert(n->branches[1]->results.items, n->branches[1]->results.count - 1, at, param);
  insert(n->outputs.items, n->outputs.count - 1, at, flow_append_output(f, n, loop, like));
  for (uint32_t i = at; i < n->outputs.count; i++)
    f->values.items[n->outputs.items[i]].index = i;
  return param;
}

/* ---- reads ---- */

struct changed {
  bool *vars; /* per variable: the loop updates it */
};

static void note_update(void *self, uint32_t var, enum touch touch) { ((struct changed *)self)->vars[var] |= touch == TOUCH_UPDATE; }

/* A read that gives the same in each turn, of a shape that is known. */
static bool is_steady_read(const struct build *b, const struct flow *f, const struct flow_node *n, uint32_t task, const bool *changed) {
  if (!n || n->op != FLOW_READ || n->guard_count || n->task != task || changed[n->var] || !b->vars.items[n->var].has_shape)
    return false;
  const struct flow_value *x = &f->values.items[n->outputs.items[0]];
  int64_t size;
  for (int d = 0; d < x->rank; d++)
    if (!dim_is_const(f->dims, dim_resolve(f->dims, x->dims[d]), &size))
      return false;
  return !x->any_rank;
}

static value_id read_before(struct flow *f, flow_id loop, const struct flow_node *read, struct flow_value like) {
  const struct flow_node *n = f->nodes.items[loop];
  flow_id id;
  struct flow_node *r = flow_append(f, FLOW_READ, read, n->task, &id);
  r->var = read->var;
  r->imm = READ_IN_LOOP;
  r->guards = n->guards;
  r->guard_count = n->guard_count;
  for (uint32_t i = 0; i < n->controls.count; i++)
    vec_push(&r->controls, n->controls.items[i]);
  return flow_append_output(f, r, id, like);
}

/* The body's reads of the variable become one, in front of the loop. The condition runs where the body may not: it keeps its own. */
static bool hoist_reads_of(const struct build *b, struct flow *f, flow_id loop, const bool *changed) {
  struct flow_node *n = f->nodes.items[loop];
  struct flow *body = n->branches[1];
  value_id *param = calloc(b->vars.count + 1, sizeof *param);
  bool any = false;
  for (flow_id id = 1; id < body->nodes.count; id++) {
    struct flow_node *read = body->nodes.items[id];
    if (!is_steady_read(b, body, read, n->task, changed))
      continue;
    value_id v = read->outputs.items[0];
    if (!param[read->var])
      param[read->var] = loop_add_invariant(f, loop, read_before(f, loop, read, body->values.items[v]));
    flow_replace_uses(body, v, param[read->var]);
    node_make_noop(read);
    any = true;
  }
  free(param);
  return any;
}

/* Variables that a loop reads and does not change are read once, in front of it. */
static void hoist_reads(const struct build *b, struct flow *f) {
  struct changed changed = {calloc(b->vars.count + 1, 1)};
  bool any = false;
  uint32_t count = f->nodes.count;
  for (flow_id id = 1; id < count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (!n || n->op != FLOW_WHILE || !loop_is_regular(n))
      continue;
    memset(changed.vars, 0, b->vars.count + 1);
    for (uint32_t r = 0; r < 2; r++)
      flow_touches(n->branches[r], note_update, &changed);
    any |= hoist_reads_of(b, f, id, changed.vars);
  }
  free(changed.vars);
  if (any)
    flow_sort(f);
}

/* ---- the pass ---- */

static bool has_loop(const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t r = 0; n && r < n->region_count; r++)
      if (n->op == FLOW_WHILE || has_loop(n->branches[r]))
        return true;
  }
  return false;
}

/* Of a flow; true: it is another one now. */
typedef bool (*flow_work)(const struct build *b, struct flow *f);

/* Inner loops first: what they leave in front of them may leave the next one too. */
static bool work_on(const struct build *b, struct flow *f, flow_work work) {
  bool any = false;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    for (uint32_t r = 0; n && r < n->region_count; r++)
      any |= work_on(b, n->branches[r], work);
  }
  return work(b, f) || any;
}
static bool take_out(const struct build *b, struct flow *f) {
  hoist_reads(b, f);
  loops_list_rows(b, f); /* what is saved of rows is not made again */
  loops_join_saves(f);
  return true;
}
static bool make_rows(const struct build *b, struct flow *f) {
  bool any = loops_list_rows(b, f);
  return loops_array_rows(b, f) || any;
}
static void drop_unused(struct flow *f) {
  do
    flow_drop_dead(f);
  while (flow_trim_regions(f));
  flow_drop_dead(f);
}

status pass_loops(struct build *b) {
  for (uint32_t i = 0; i < b->entries.count; i++) {
    struct flow *f = b->entries.items[i].flow;
    if (!has_loop(f))
      continue;
    work_on(b, f, take_out);
    do /* a list or an array that nobody needs any more hides no other one */
      drop_unused(f);
    while (work_on(b, f, make_rows));
    bool moves = b->options.math != MATH_STRICT && work_on(b, f, loops_sum_behind); /* sums are added up in another order */
    if (work_on(b, f, loops_move_products) || moves)
      drop_unused(f);
  }
  return OK;
}
