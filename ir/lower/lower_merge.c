/* lower_merge.c: conds of TensorFlow 1. A Switch gives its value a condition on each side; what uses it has that condition too,
 * and a Merge takes it away again by choosing. So a cond is a set of guarded nodes, of which a step runs one side: nothing
 * is computed that TensorFlow would not compute, and a gradient may use what its forward side made. */
#include <string.h>

#include "ir/kernel/formula_words.h"
#include "ir/lower/lower_walk.h"
#include "ir/lower/lower_state.h"

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

static struct element takes_output(struct formula *f, struct element index, struct element output, struct element c) {
  (void)c;
  return EQ(index, output);
}

/* Output k is there when the index is k and none of those before it; the last one otherwise. */
status build_switch_n(struct op_call *c) {
  value_id data, index;
  TRY(op_input(c, 0, &data));
  TRY(op_input(c, 1, &index));
  if (op_value(c, index)->rank != 0)
    return fail(INVALID_ARGUMENT, "The second input must be a scalar, but it has shape %s",
                op_shape_text(c, op_value(c, index)->rank, op_value(c, index)->dims));
  c->keeps_guards = true;
  const struct guards *rest = c->guards;
  for (uint32_t k = 0; k < c->out_count; k++) {
    int64_t number = k;
    c->out[k] = (struct bound){.value = data, .maker = c->in[0].maker, .guards = rest};
    if (k + 1 == c->out_count)
      break;
    value_id taken, in[] = {index, op_constant_i64s(c, DTYPE_INT32, 0, NULL, &number, 1)};
    TRY(op_map(c, in, 2, DTYPE_BOOL, takes_output, &taken));
    c->out[k].guards = guards_add(c->lw, rest, (struct flow_guard){taken, true});
    rest = guards_add(c->lw, rest, (struct flow_guard){taken, false});
  }
  return OK;
}

/* ---- merging ---- */

/* One of the values that a Merge chooses from: what it is, its number among the inputs, and when it is there. */
struct side {
  struct bound in;
  const struct guards *guards;
  value_id value, index; /* 0: not read yet, NO_VALUE for what stays a reference */
};

static bool guards_within(const struct guards *g, const struct guards *of) {
  for (uint32_t i = 0; g && i < g->count; i++)
    if (!guards_have(of, g->list[i]))
      return false;
  return true;
}

static const struct guards *guards_minus(struct lower *lw, const struct guards *g, const struct guards *taken) {
  const struct guards *r = NULL;
  for (uint32_t i = 0; g && i < g->count; i++)
    if (!guards_have(taken, g->list[i]))
      r = guards_add(lw, r, g->list[i]);
  return r;
}

/* Whether all of `rest` holds, as a value that is there under `base`; a predicate of the list may itself be there only when
 * those before it hold. */
static value_id all_hold(struct op_call *c, const struct guards *base, const struct guards *rest, uint32_t from) {
  if (!rest || from == rest->count)
    return op_bool(c, true);
  struct flow_guard g = rest->list[from];
  value_id inner = all_hold(c, guards_add(c->lw, base, g), rest, from + 1), no = op_bool(c, false);
  struct op_call here = *c;
  here.guards = base;
  return op_merge(&here, g.predicate, g.expected ? no : inner, g.expected ? inner : no, 0, NULL);
}

/* When the merged value is there: under `common`, and, where the sides need more, when the side that is taken has it. */
static const struct guards *merged_guards(struct op_call *c, const struct guards *common, value_id predicate, const struct side *on,
                                          const struct side *off) {
  struct lower *lw = c->lw;
  const struct guards *with_on = guards_add(lw, common, (struct flow_guard){predicate, true});
  const struct guards *with_off = guards_add(lw, common, (struct flow_guard){predicate, false});
  const struct guards *rest_on = guards_minus(lw, on->guards, with_on), *rest_off = guards_minus(lw, off->guards, with_off);
  if (guards_within(rest_on, rest_off) && guards_within(rest_off, rest_on))
    return guards_join(lw, common, rest_on);
  value_id live_on = all_hold(c, with_on, rest_on, 0), live_off = all_hold(c, with_off, rest_off, 0);
  struct op_call here = *c;
  here.guards = common;
  value_id live = op_merge(&here, predicate, live_off, live_on, 0, NULL);
  return guards_add(lw, common, (struct flow_guard){live, true});
}

static status read_side(struct op_call *c, struct side *s) {
  struct bound b = s->in;
  b.guards = s->guards;
  return s->value ? OK : op_read(c, b, &s->value);
}

/* Both sides are the same variable: its reference comes out, after what was done to it on either side. */
static void merge_references(struct op_call *c, const struct side *on, const struct side *off, struct side *out) {
  out->in = on->in;
  if (on->in.after == off->in.after)
    return;
  struct flow_node *join = flow_add_node(c->lw->walk.flow, FLOW_NOOP, c->node->name, c->node->op, c->node->task, &out->in.after);
  if (off->in.after)
    vec_push(&join->controls, off->in.after);
  if (on->in.after)
    vec_push(&join->controls, on->in.after);
}

static status merge_two(struct op_call *c, const struct guards *common, value_id predicate, struct side *on, struct side *off,
                        struct side *out) {
  *out = (struct side){.guards = merged_guards(c, common, predicate, on, off)};
  c->guards = out->guards;
  out->index = op_merge(c, predicate, off->index, on->index, 0, NULL);
  if (on->in.var && on->in.var == off->in.var && !on->in.value && !off->in.value && !on->value && !off->value) {
    merge_references(c, on, off, out);
    return OK;
  }
  TRY(read_side(c, on));
  TRY(read_side(c, off));
  c->guards = out->guards;
  struct flow_value x = *op_value(c, off->value), y = *op_value(c, on->value);
  if (x.rank != y.rank) {
    out->in = bound_alternatives(c, predicate, (struct bound){.value = off->value, .maker = off->in.maker},
                                 (struct bound){.value = on->value, .maker = on->in.maker});
    return OK;
  }
  for (int d = 0; d < x.rank; d++)
    if (dim_equal(c->lw->dims, x.dims[d], y.dims[d]) != 1)
      x.dims[d] = op_new_symbol(c);
  out->value = op_merge(c, predicate, off->value, on->value, x.rank, x.dims);
  out->in = (struct bound){.value = out->value, .maker = on->in.maker};
  return OK;
}

/* The predicate that tells the sides apart: each side needs it, some to be true and some to be false. */
static value_id dividing_predicate(const struct side *sides, uint32_t count, const struct guards *common) {
  const struct guards *first = sides[0].guards;
  for (uint32_t i = 0; first && i < first->count; i++) {
    struct flow_guard g = first->list[i], other = {g.predicate, !g.expected};
    bool every = !guards_have(common, g), differs = false;
    for (uint32_t s = 1; s < count && every; s++) {
      every = guards_have(sides[s].guards, g) || guards_have(sides[s].guards, other);
      differs = differs || guards_have(sides[s].guards, other);
    }
    if (every && differs)
      return g.predicate;
  }
  return NO_VALUE;
}

static status merge_sides(struct op_call *c, struct side *sides, uint32_t count, const struct guards *common, struct side *out) {
  for (uint32_t i = 0; i < count; i++)
    if (count == 1 || guards_within(sides[i].guards, common)) { /* always there, so that it is there first */
      *out = sides[i];
      return OK;
    }
  value_id predicate = dividing_predicate(sides, count, common);
  if (!predicate)
    return fail(UNIMPLEMENTED, "merges values that are not the sides of one cond");
  struct side *half[2] = {ARENA_ARRAY(c->lw->arena, struct side, count), ARENA_ARRAY(c->lw->arena, struct side, count)}, merged[2];
  uint32_t halves[2] = {0, 0};
  for (uint32_t i = 0; i < count; i++) {
    bool when = guards_have(sides[i].guards, (struct flow_guard){predicate, true});
    half[when][halves[when]++] = sides[i];
  }
  for (uint32_t h = 0; h < 2; h++)
    TRY(merge_sides(c, half[h], halves[h], guards_add(c->lw, common, (struct flow_guard){predicate, h}), &merged[h]));
  return merge_two(c, common, predicate, &merged[1], &merged[0], out);
}

/* What all sides need. */
static const struct guards *common_guards(struct lower *lw, const struct side *sides, uint32_t count) {
  const struct guards *r = NULL, *first = sides[0].guards;
  for (uint32_t i = 0; first && i < first->count; i++) {
    bool every = true;
    for (uint32_t s = 1; s < count; s++)
      every = every && guards_have(sides[s].guards, first->list[i]);
    if (every)
      r = guards_add(lw, r, first->list[i]);
  }
  return r;
}

status build_merge(struct op_call *c) {
  struct side *sides = ARENA_ARRAY(c->lw->arena, struct side, c->in_count + 1), out;
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->in_count; i++) {
    int64_t index = i;
    if (c->in[i].dead)
      continue;
    c->guards = NULL;
    sides[count++] =
      (struct side){.in = c->in[i], .guards = c->in[i].guards, .index = op_constant_i64s(c, DTYPE_INT32, 0, NULL, &index, 1)};
  }
  c->keeps_guards = true;
  if (count == 0) {
    c->out[0].dead = c->out[1].dead = true;
    return OK;
  }
  TRY(merge_sides(c, sides, count, common_guards(c->lw, sides, count), &out));
  c->guards = out.guards;
  c->out[0] = out.in;
  c->out[0].guards = out.guards;
  op_set_output(c, 1, out.index);
  c->out[1].guards = out.guards;
  return OK;
}
