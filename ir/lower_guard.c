/* lower_guard.c: conds of TensorFlow 1. A Switch gives its value a condition on each side; what uses it has that condition too,
 * and a Merge takes it away again by choosing. So a cond is a set of guarded nodes, of which a step runs one side: nothing
 * is computed that TensorFlow would not compute, and a gradient may use what its forward side made. */
#include <string.h>

#include "ir/lower_frame.h"

static bool has_guard(const struct guards *g, struct flow_guard wanted) {
  for (uint32_t i = 0; g && i < g->count; i++)
    if (g->list[i].predicate == wanted.predicate && g->list[i].expected == wanted.expected)
      return true;
  return false;
}

static const struct guards *guards_add(struct lower *lw, const struct guards *g, struct flow_guard one) {
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
    if (!has_guard(a, b->list[i]))
      a = guards_add(lw, a, b->list[i]);
  return a;
}

static const struct guards *without(struct lower *lw, const struct guards *g, value_id predicate) {
  const struct guards *r = NULL;
  for (uint32_t i = 0; g && i < g->count; i++)
    if (g->list[i].predicate != predicate)
      r = guards_add(lw, r, g->list[i]);
  return r;
}

status build_switch(struct op_call *c) {
  value_id predicate;
  TRY(op_input(c, 1, &predicate));
  struct flow_value p = *op_value(c, predicate);
  if (p.rank != 0)
    return fail(INVALID_ARGUMENT, "The second input must be a scalar, but it has shape %s", op_shape_text(c, p.rank, p.dims));
  struct bound data = c->in[0];
  if (!(data.var && c->node->output_dtypes[0] > DTYPE_REF) && !(data.var && op_output_dtype(c, 0) == DTYPE_RESOURCE)) {
    TRY(op_input(c, 0, &data.value));
    data.var = 0;
  }
  c->keeps_guards = true;
  for (uint32_t side = 0; side < 2; side++) {
    c->out[side] = data;
    if (p.data)
      c->out[side].dead = *(const bool *)p.data != (bool)side;
    c->out[side].guards = p.data ? c->guards : guards_add(c->lw, c->guards, (struct flow_guard){predicate, side});
  }
  return OK;
}

/* The predicate on which two sides differ; NO_VALUE when they are not the two sides of one cond. */
static value_id sides_of(const struct guards *a, const struct guards *b, bool *a_is_true) {
  for (uint32_t i = 0; a && i < a->count; i++)
    for (uint32_t j = 0; b && j < b->count; j++)
      if (a->list[i].predicate == b->list[j].predicate && a->list[i].expected != b->list[j].expected) {
        *a_is_true = a->list[i].expected;
        return a->list[i].predicate;
      }
  return NO_VALUE;
}

static status merge_index(struct op_call *c, value_id predicate, bool first_is_true) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_BOOL);
  uint32_t b = kb_in(&kb, predicate), o = kb_out(&kb, DTYPE_INT32, 0, NULL);
  struct element p = kb_load(&kb, b, NULL);
  expr_id zero = expr_int(kb.k, DTYPE_INT32, 0), one = expr_int(kb.k, DTYPE_INT32, 1);
  kb_store(&kb, o, NULL, real_element(expr_select(kb.k, p.re, first_is_true ? zero : one, first_is_true ? one : zero)));
  op_set_output(c, 1, kb_value(&kb, o));
  TRY(kb_finish(&kb));
  c->out[1].guards = c->guards;
  return OK;
}

static status merge_two(struct op_call *c, uint32_t first, uint32_t second) {
  bool first_is_true;
  value_id predicate = sides_of(c->in[first].guards, c->in[second].guards, &first_is_true);
  if (!predicate)
    return fail(UNIMPLEMENTED, "merges values that are not the two sides of one cond");
  uint32_t on = first_is_true ? first : second, off = first_is_true ? second : first;
  c->guards = guards_join(c->lw, without(c->lw, c->in[on].guards, predicate), without(c->lw, c->in[off].guards, predicate));
  c->keeps_guards = true;
  if (c->in[on].var && c->in[on].var == c->in[off].var && !c->in[on].value && !c->in[off].value) {
    c->out[0] = c->in[on];
    c->out[0].guards = c->guards;
    if (c->in[on].after != c->in[off].after) { /* what was done to it on either side comes before its use */
      struct flow_node *join = flow_add_node(c->lw->flow, FLOW_NOOP, c->node->name, c->node->op, c->node->task, &c->out[0].after);
      for (uint32_t i = 0; i < 2; i++)
        if (c->in[i ? on : off].after)
          vec_push(&join->controls, c->in[i ? on : off].after);
    }
    return merge_index(c, predicate, first_is_true);
  }
  value_id sides[2];
  for (uint32_t i = 0; i < 2; i++) {
    struct op_call side = *c;
    side.in = &c->in[i ? on : off];
    side.in_count = 1;
    side.guards = side.in->guards;
    TRY(op_input(&side, 0, &sides[i]));
  }
  struct flow_value x = *op_value(c, sides[0]), y = *op_value(c, sides[1]);
  if (x.rank != y.rank)
    return fail(UNIMPLEMENTED, "merges values of rank %d and %d", x.rank, y.rank);
  for (int d = 0; d < x.rank; d++)
    if (dim_equal(c->lw->dims, x.dims[d], y.dims[d]) != 1)
      x.dims[d] = op_new_symbol(c);
  struct flow_node *n = op_emit(c, FLOW_MERGE, false);
  vec_push(&n->inputs, predicate);
  vec_push(&n->inputs, sides[0]);
  vec_push(&n->inputs, sides[1]);
  c->out[0] = (struct bound){.value = op_add_output(c, n, x.dtype, x.rank, x.dims), .guards = c->guards, .maker = c->in[on].maker};
  return merge_index(c, predicate, first_is_true);
}

status build_merge(struct op_call *c) {
  uint32_t live[2], count = 0;
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (c->in[i].dead)
      continue;
    if (count == 2)
      return fail(UNIMPLEMENTED, "merges more than two values");
    live[count++] = i;
  }
  c->keeps_guards = true;
  if (count == 0) {
    c->out[0].dead = c->out[1].dead = true;
    return OK;
  }
  if (count == 2)
    return merge_two(c, live[0], live[1]);
  int64_t index = live[0];
  c->out[0] = c->in[live[0]];
  c->guards = c->in[live[0]].guards;
  op_set_output(c, 1, op_constant_i64s(c, DTYPE_INT32, 0, NULL, &index, 1));
  c->out[1].guards = c->guards;
  return OK;
}
