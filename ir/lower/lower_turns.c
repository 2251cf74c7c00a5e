/* lower_turns.c: see turns.h. The loop's first variable counts rows, up or down; states and what is fixed are behind it. */
#include "ir/lower/turns.h"

#include <string.h>

#include "ir/lower/lower_frame.h"
#include "ir/lower/lower_state.h"

struct loop_maker {
  struct op_call *c;
  const struct turns *turns;
  value_id *in; /* outside: the first row, states, what is fixed */
  uint32_t in_count;
};

static struct flow *make_region(const struct loop_maker *m) {
  struct flow *outer = op_flow(m->c), *region = flow_create(op_arena(m->c), op_dims(m->c));
  region->parent = outer;
  for (uint32_t i = 0; i < m->in_count; i++) {
    const struct flow_value *x = &outer->values.items[m->in[i]];
    value_id v = flow_add_value(region, x->dtype, x->rank, x->dims);
    region->values.items[v].index = i;
    vec_push(&region->params, v);
  }
  return region;
}

/* A scalar of the row's number. */
static status map_row(struct op_call *c, value_id row, enum dtype dtype, expr_id (*map)(struct kb *kb, const struct turns *t, expr_id row),
                      const struct turns *turns, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, row), o = kb_out(&kb, dtype, 0, NULL);
  kb_store(&kb, o, NULL, real_element(map(&kb, turns, kb_load(&kb, in, NULL).re)));
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}
static expr_id is_row(struct kb *kb, const struct turns *t, expr_id row) {
  return t->backwards ? expr_binary(kb->k, SCALAR_LE, kb_int(kb, 0), row) : kb_lt(kb, row, kb_dim(kb, t->count));
}
static expr_id next_row(struct kb *kb, const struct turns *t, expr_id row) { return kb_add(kb, row, kb_int(kb, t->backwards ? -1 : 1)); }

/* Inside of a region there are no conditions and no effects of the call yet. */
static struct op_call call_inside(const struct op_call *c) { return (struct op_call){.lw = c->lw, .node = c->node, .row = c->row}; }

static status build_condition(const struct loop_maker *m, struct flow *region) {
  struct op_call inner = call_inside(m->c);
  value_id more;
  TRY(map_row(&inner, region->params.items[0], DTYPE_BOOL, is_row, m->turns, &more));
  vec_push(&region->results, more);
  return OK;
}

static status build_body(const struct loop_maker *m, struct flow *region) {
  const struct turns *t = m->turns;
  struct op_call inner = call_inside(m->c);
  const value_id *params = region->params.items;
  value_id *given = ARENA_ARRAY(op_arena(m->c), value_id, t->state_count + t->row_count + 1), row;
  struct turn turn = {.call = &inner, .self = t->self, .row = params[0], .states = params + 1, .fixed = params + 1 + t->state_count};
  turn.next = given;
  turn.rows = given + t->state_count;
  TRY(map_row(&inner, params[0], DTYPE_INT64, next_row, t, &row));
  TRY(t->build(&turn));
  vec_push(&region->results, row);
  for (uint32_t i = 0; i < t->state_count; i++)
    vec_push(&region->results, turn.next[i]);
  for (uint32_t i = 0; i < t->fixed_count; i++)
    vec_push(&region->results, turn.fixed[i]);
  for (uint32_t i = 0; i < t->row_count; i++)
    vec_push(&region->results, turn.rows[i]);
  return OK;
}

static status build_inside(const struct loop_maker *m, struct flow *region,
                           status (*build)(const struct loop_maker *m, struct flow *region)) {
  struct flow *outer = region_enter(m->c->lw, region);
  status s = build(m, region);
  region_leave(m->c->lw, outer);
  return s;
}

static void emit_loop(const struct loop_maker *m, struct flow *const *regions, value_id *last, value_id *arrays) {
  struct op_call *c = m->c;
  const struct turns *t = m->turns;
  struct flow_node *n = op_emit(c, FLOW_WHILE, false);
  if (c->guard)
    vec_push(&n->controls, c->guard);
  if (c->effect)
    vec_push(&n->controls, c->effect);
  n->region_count = 2;
  n->branches = ARENA_ARRAY(op_arena(c), struct flow *, 2);
  for (int r = 0; r < 2; r++)
    n->branches[r] = n->regions[r] = regions[r];
  n->rows_out = t->row_count;
  n->from_last = t->backwards;
  for (uint32_t i = 0; i < m->in_count; i++) {
    struct flow_value x = *op_value(c, m->in[i]);
    vec_push(&n->inputs, m->in[i]);
    value_id v = op_add_output(c, n, x.dtype, x.rank, x.dims);
    if (i > 0 && i <= t->state_count)
      last[i - 1] = v;
  }
  for (uint32_t i = 0; i < t->row_count; i++) {
    struct flow_value x = regions[1]->values.items[regions[1]->results.items[m->in_count + i]];
    memmove(x.dims + 1, x.dims, sizeof *x.dims * (size_t)x.rank);
    x.dims[0] = t->count;
    arrays[i] = op_add_output(c, n, x.dtype, x.rank + 1, x.dims);
  }
}

status lower_turns(struct op_call *c, const struct turns *turns, value_id *last, value_id *arrays) {
  struct loop_maker m = {.c = c, .turns = turns, .in_count = 1 + turns->state_count + turns->fixed_count};
  dim first = turns->backwards ? dim_sub(op_dims(c), turns->count, op_dim(c, 1)) : op_dim(c, 0);
  m.in = ARENA_ARRAY(op_arena(c), value_id, m.in_count);
  m.in[0] = op_dims_value(c, DTYPE_INT64, 0, &first, 1);
  memcpy(m.in + 1, turns->states, sizeof *m.in * turns->state_count);
  memcpy(m.in + 1 + turns->state_count, turns->fixed, sizeof *m.in * turns->fixed_count);
  struct flow *regions[2] = {make_region(&m), make_region(&m)};
  TRY(build_inside(&m, regions[0], build_condition));
  TRY(build_inside(&m, regions[1], build_body));
  emit_loop(&m, regions, last, arrays);
  return OK;
}
