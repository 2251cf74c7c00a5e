/* unroll.c: see unroll.h. */
#include "compiler/edit/unroll.h"

#include <stdlib.h>

#include "compiler/edit/flow_copy.h"
#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/pass/pass.h"

/* ---- which ---- */

static uint32_t count_nodes(const struct flow *f) {
  uint32_t count = 0;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    count += n != NULL;
    for (uint32_t i = 0; n && i < n->region_count; i++)
      count += count_nodes(n->branches[i]);
  }
  return count;
}

static bool is_shaped_like(const struct flow *f, const struct flow_value *a, const struct flow_value *b) {
  bool same = a->rank == b->rank && a->dtype == b->dtype;
  for (int d = 0; same && d < a->rank; d++)
    same = dim_equal(f->dims, a->dims[d], b->dims[d]) == 1;
  return same;
}
static bool keeps_shapes(const struct flow *f, const struct flow_node *loop) {
  const struct flow *body = loop->branches[1];
  for (uint32_t i = 0; i < loop->inputs.count; i++) {
    const struct flow_value *param = &body->values.items[body->params.items[i]];
    if (!is_shaped_like(f, &f->values.items[loop->inputs.items[i]], param) ||
        !is_shaped_like(f, &body->values.items[body->results.items[i]], param))
      return false;
  }
  return true;
}

static int64_t turns_of(const struct flow *f, const struct flow_node *loop) {
  dim turns = loop_turns(f, loop);
  int64_t count;
  return turns != NO_DIM && dim_is_const(f->dims, turns, &count) ? count : -1;
}

bool loop_may_unroll(const struct flow *f, const struct flow_node *loop) {
  int64_t turns = turns_of(f, loop);
  return turns >= 0 && turns <= UNROLL_NODES_MAX && loop->rows_in == 0 && loop->rows_out == 0 &&
         (int64_t)count_nodes(loop->branches[1]) * turns <= UNROLL_NODES_MAX && keeps_shapes(f, loop);
}

/* ---- sizes ---- */

struct symbols {
  bool *bound, *outside; /* per symbol: a node of the body gives it its value; somebody else knows it */
};
static void note_bound(void *self, uint32_t symbol) { ((struct symbols *)self)->bound[symbol] = true; }
static void find_bound(struct symbols *s, const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (n)
      flow_node_binds(f, n, note_bound, s);
    for (uint32_t i = 0; n && i < n->region_count; i++)
      find_bound(s, n->branches[i]);
  }
}
/* The symbols that each turn gives a value of its own; the caller frees them. */
static bool *find_own(const struct flow *f, const struct flow_node *loop) {
  uint32_t count = dims_symbol_count(f->dims);
  struct symbols s = {calloc(count + 1, 1), calloc(count + 1, 1)};
  find_bound(&s, loop->branches[1]);
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id] != loop)
      flow_node_symbols(f, f->nodes.items[id], s.outside);
  for (uint32_t i = 0; i < count; i++)
    s.bound[i] = s.bound[i] && !s.outside[i];
  free(s.outside);
  return s.bound;
}

/* ---- turns ---- */

typedef VEC(flow_id) id_list;
struct unrolling {
  struct flow *flow;
  const struct flow_node *loop;
  value_id *state; /* what the loop's variables are at the beginning of a turn */
  bool *own;       /* per symbol of the first own_count: each turn has another one */
  uint32_t own_count;
  id_list last, now; /* effects of the turn before, and of this one */
  id_list all;
};

static void note_any(void *self, uint32_t var, enum touch touch) {
  (void)var;
  (void)touch;
  *(bool *)self = true;
}
static bool has_effect(const struct flow_node *n) {
  bool touches = false;
  node_touches(n, note_any, &touches);
  return touches || node_changes(n);
}
/* Variables are seen by nobody but who touches them; calls may see each other. */
static bool keep_order(const struct flow_node *a, const struct flow_node *b) {
  return (node_calls(a) && node_calls(b)) || nodes_share_variable(a, b);
}

/* The first turn comes after what the loop does. */
static void order_effect(struct unrolling *u, struct flow_node *n) {
  for (uint32_t i = 0; u->last.count == 0 && i < u->loop->controls.count; i++)
    node_follow(n, u->loop->controls.items[i]);
  for (uint32_t i = 0; i < u->last.count; i++)
    if (keep_order(n, u->flow->nodes.items[u->last.items[i]]))
      node_follow(n, u->last.items[i]);
}

static void copy_turn(struct unrolling *u) {
  const struct flow *body = u->loop->branches[1];
  struct flow_copy c;
  flow_copy_begin(&c, body, u->flow);
  flow_copy_new_symbols(&c, u->own, u->own_count);
  for (uint32_t i = 0; i < body->params.count; i++)
    c.value[body->params.items[i]] = u->state[i];
  for (flow_id of = 1; of < body->nodes.count; of++) {
    flow_id id;
    if (!body->nodes.items[of])
      continue;
    struct flow_node *n = flow_copy_node(&c, of, &id);
    if (n->op == FLOW_READ)
      n->imm = READ_NOW;
    if (n->op != FLOW_CONST)
      flow_copy_guards(&c, n, u->loop->guards, u->loop->guard_count);
    if (!has_effect(n))
      continue;
    order_effect(u, n);
    vec_push(&u->now, id);
  }
  for (uint32_t i = 0; i < body->results.count; i++)
    u->state[i] = c.value[body->results.items[i]];
  flow_copy_end(&c);
}

static void end_turn(struct unrolling *u) {
  for (uint32_t i = 0; i < u->now.count; i++)
    vec_push(&u->all, u->now.items[i]);
  id_list last = u->last;
  u->last = u->now;
  u->now = last;
  u->now.count = 0;
}

/* What came after the loop comes after all that its turns did. */
static void follow_turns(struct unrolling *u, flow_id loop) {
  for (flow_id id = 1; id < u->flow->nodes.count; id++) {
    struct flow_node *n = u->flow->nodes.items[id];
    if (!n || !node_follows(n, loop))
      continue;
    node_follow_no_more(n, loop);
    for (uint32_t i = 0; i < u->all.count; i++)
      node_follow(n, u->all.items[i]);
    for (uint32_t i = 0; i < u->loop->controls.count; i++)
      node_follow(n, u->loop->controls.items[i]);
  }
}

void loop_unroll(struct flow *f, flow_id at) {
  struct unrolling u = {.flow = f, .loop = f->nodes.items[at], .own_count = dims_symbol_count(f->dims)};
  u.own = find_own(f, u.loop);
  u.state = malloc((u.loop->inputs.count + 1) * sizeof *u.state);
  for (uint32_t i = 0; i < u.loop->inputs.count; i++)
    u.state[i] = u.loop->inputs.items[i];
  for (int64_t turns = turns_of(f, u.loop); turns > 0; turns--) {
    copy_turn(&u);
    end_turn(&u);
  }
  follow_turns(&u, at);
  f->nodes.items[at] = NULL;
  for (uint32_t i = 0; i < u.loop->outputs.count; i++)
    flow_replace_uses(f, u.loop->outputs.items[i], u.state[i]);
  free(u.state);
  free(u.own);
  vec_free(&u.last);
  vec_free(&u.now);
  vec_free(&u.all);
}
