/* lower_guard.c: conditions of nodes and of values (lower_merge.c), and the choice of one of two values by them. */
#include <string.h>

#include "ir/lower/lower_state.h"

bool guards_have(const struct guards *g, struct flow_guard wanted) {
  for (uint32_t i = 0; g && i < g->count; i++)
    if (g->list[i].predicate == wanted.predicate && g->list[i].expected == wanted.expected)
      return true;
  return false;
}

const struct guards *guards_add(struct lower *lw, const struct guards *g, struct flow_guard one) {
  uint32_t n = g ? g->count : 0;
  struct guards *r = arena_alloc(lw->arena, sizeof *r + sizeof r->list[0] * (n + 1));
  if (n)
    memcpy(r->list, g->list, sizeof r->list[0] * n);
  r->list[n] = one;
  r->count = n + 1;
  return r;
}

const struct guards *guards_join(struct lower *lw, const struct guards *a, const struct guards *b) {
  if (!a || !b || a == b)
    return a ? a : b;
  if (a->count < b->count) { /* the longer one usually holds the other */
    const struct guards *t = a;
    a = b;
    b = t;
  }
  for (uint32_t i = 0; i < b->count; i++)
    if (!guards_have(a, b->list[i]))
      a = guards_add(lw, a, b->list[i]);
  return a;
}

value_id op_bool(struct op_call *c, bool value) {
  bool *data = arena_copy(c->lw->arena, &value, sizeof value);
  return op_constant(c, DTYPE_BOOL, 0, NULL, data);
}

value_id op_merge(struct op_call *c, value_id predicate, value_id when_false, value_id when_true, int rank, const dim *dims) {
  struct flow_node *n = op_emit(c, FLOW_MERGE, false);
  vec_push(&n->inputs, predicate);
  vec_push(&n->inputs, when_false);
  vec_push(&n->inputs, when_true);
  return op_add_output(c, n, op_value(c, when_true)->dtype, rank, dims);
}
