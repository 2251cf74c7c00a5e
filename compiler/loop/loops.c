/* loops.c: the pass `loops`: what its turns do not change is taken out of a `while`. */
#include "compiler/loop/loops.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/pass/pass.h"
#include "compiler/edit/region_trim.h"

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
static bool hoist_reads(const struct build *b, struct flow *f) {
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
  return any;
}

/* ---- the pass ---- */

static bool has_regions(const struct flow *f) {
  bool has = false;
  for (flow_id id = 1; id < f->nodes.count; id++)
    has = has || (f->nodes.items[id] && f->nodes.items[id]->region_count > 0);
  return has;
}
static bool has_loop(const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t r = 0; n && r < n->region_count; r++)
      if (n->op == FLOW_WHILE || has_loop(n->branches[r]))
        return true;
  }
  return false;
}

/* Inner loops first: what they leave in front of them may leave the next one too. */
static bool each_flow(const struct build *b, struct flow *f, bool (*work)(const struct build *b, struct flow *f)) {
  bool any = false;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    for (uint32_t r = 0; n && r < n->region_count; r++)
      any |= each_flow(b, n->branches[r], work);
  }
  return work(b, f) || any;
}
static bool make_rows(const struct build *b, struct flow *f) {
  bool any = loops_list_rows(b, f);
  any |= loops_array_rows(b, f);
  return loops_hand_rows_on(b, f) || any;
}
/* Sums are added up in another order. */
static bool add_up_anew(const struct build *b, struct flow *f) {
  bool any = each_flow(b, f, loops_part_products);
  return each_flow(b, f, loops_sum_behind) || any;
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
    if (!has_loop(f)) {
      if (has_regions(f)) /* what conds take and do not use */
        drop_unused(f);
      continue;
    }
    each_flow(b, f, hoist_reads);
    each_flow(b, f, loops_join_saves);
    do /* a list or an array that nobody needs any more hides no other one */
      drop_unused(f);
    while (each_flow(b, f, make_rows));
    bool moves = b->options.math != MATH_STRICT && add_up_anew(b, f);
    moves |= each_flow(b, f, loops_move_products);
    if (each_flow(b, f, loops_hand_rows_on) || moves)
      drop_unused(f);
  }
  return OK;
}
