/* lower_choice.c: ops whose loops depend on one small integer, an axis: when it is known only while the step runs, the op is lowered
 * once for each value that it can have, as the branches of an `if`, and the step takes one. The ranks of the results must not
 * depend on it; sizes that do become symbols.
 *
 * Where a rank depends on whether a size of the feeds is 1, the whole entry is lowered for both answers. */
#include <string.h>

#include "ir/kernel/formula_words.h"
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"

/* The axis counted from the front. */
static struct element from_front(struct formula *f, struct element axis, struct element count, struct element unused) {
  (void)unused;
  return SELECT(LT(axis, K(0)), ADD(axis, count), axis);
}

/* `wrong`: what the op says of axis i; NULL where it takes it. */
static status check_axis(struct op_call *c, value_id axis, int64_t count, const char *const *wrong) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  kb.effect = true;
  expr_id at = kb_index(&kb, kb_load(&kb, kb_in(&kb, axis), NULL)), n = kb_int(&kb, count);
  kb_check(&kb, kb_and(&kb, expr_binary(kb.k, SCALAR_LE, kb_int(&kb, -count), at), kb_lt(&kb, at, n)), INVALID_ARGUMENT,
           "axis %d is out of range for %d dimensions", at, n);
  for (int64_t i = 0; i < count; i++) {
    expr_id is_other =
      kb_and(&kb, expr_binary(kb.k, SCALAR_NE, at, kb_int(&kb, i)), expr_binary(kb.k, SCALAR_NE, at, kb_int(&kb, i - count)));
    if (wrong[i])
      kb_check(&kb, is_other, INVALID_ARGUMENT, arena_printf(c->lw->arena, "axis %%d: %s", wrong[i]), at, NO_EXPR);
  }
  return kb_finish(&kb);
}

/* What a branch is: the op with this axis in the place of input `input`. */
struct chosen {
  struct op_call *call;
  uint32_t input;
  int64_t axis;
};

static status build_chosen(struct op_call *inner, const void *self, const struct bound *args, uint32_t arg_count, struct bound *rets,
                           uint32_t ret_count) {
  const struct chosen *chosen = self;
  struct op_call c = *inner;
  c.in = ARENA_ARRAY(c.lw->arena, struct bound, arg_count + 2);
  c.in_count = arg_count + 1;
  c.out = rets;
  c.out_count = ret_count;
  c.guards = NULL;
  memcpy(c.in, args, sizeof *args * chosen->input);
  memcpy(c.in + chosen->input + 1, args + chosen->input, sizeof *args * (arg_count - chosen->input));
  enum dtype dtype = dtype_base(c.node->input_dtypes[chosen->input]);
  c.in[chosen->input] = (struct bound){.value = op_constant_i64s(&c, dtype, 0, NULL, &chosen->axis, 1)};
  status s = c.row->build(&c);
  inner->effect = c.effect;
  return s;
}

/* The call without the axis, which a choice takes the place of at the front. */
static status outer_call(struct op_call *c, uint32_t input, struct op_call *out) {
  *out = *c;
  out->in = ARENA_ARRAY(c->lw->arena, struct bound, c->in_count + 1);
  for (uint32_t i = 0, at = 1; i < c->in_count; i++) {
    if (i == input)
      continue;
    out->in[at] = c->in[i];
    if (!out->in[at].value)
      TRY(op_input(c, i, &out->in[at].value));
    out->in[at++].var = 0;
  }
  out->effect = c->effect;
  return OK;
}

/* Bodies for the axes that the op takes; another axis, which is an error of the step, has the body of one that it takes. */
static status try_axes(struct op_call *outer, struct op_call *c, uint32_t input, int64_t count, struct region_body *bodies,
                       const char **wrong) {
  struct chosen *chosen = ARENA_ARRAY(c->lw->arena, struct chosen, (size_t)count);
  int64_t good = -1;
  for (int64_t i = 0; i < count; i++) {
    chosen[i] = (struct chosen){c, input, i};
    bodies[i] = (struct region_body){&chosen[i], build_chosen};
    status s = lower_branch_trial(outer, &bodies[i]);
    if (s != OK && s != INVALID_ARGUMENT)
      return s;
    wrong[i] = s == OK ? NULL : arena_strdup(c->lw->arena, status_text());
    good = s == OK ? i : good;
  }
  if (good < 0)
    return fail(INVALID_ARGUMENT, "no axis fits: %s", wrong[0]);
  for (int64_t i = 0; i < count; i++)
    if (wrong[i])
      bodies[i] = bodies[good];
  return OK;
}

int op_decide_one(struct op_call *c, dim d) {
  struct lower *lw = c->lw;
  dim one = op_dim(c, 1);
  int equal = dim_equal(lw->dims, d, one);
  if (equal >= 0)
    return equal;
  for (uint32_t i = 0; i < lw->walk.entry->decisions.count; i++)
    if (dim_equal(lw->dims, lw->walk.entry->decisions.items[i].size, d) == 1)
      return lw->walk.entry->decisions.items[i].is_one;
  if (op_dim_is_late(c, d))
    return -1;
  uint32_t number = lw->walk.entry->decisions.count;
  bool is_one = number < lw->options->one_count && lw->options->ones[number];
  vec_push(&lw->walk.entry->decisions, (struct size_decision){dim_resolve(lw->dims, d), is_one});
  if (is_one)
    (void)dim_unify(lw->dims, d, one); /* a formula stays what it is; that it is 1 is known by its number */
  return is_one;
}

status lower_for_each_axis(struct op_call *c, uint32_t input, int64_t count) {
  value_id axis = c->in[input].value, choice;
  const char *wrong[LIMIT_RANK + 1];
  struct region_body bodies[LIMIT_RANK + 1];
  struct op_call outer;
  if (count < 1 || count > LIMIT_RANK + 1)
    return fail(INVALID_ARGUMENT, "a scalar has no axis");
  if (op_value(c, axis)->rank > 1 || (op_value(c, axis)->rank == 1 && op_dim_value(c, op_value(c, axis)->dims[0]) != 1))
    return fail(UNIMPLEMENTED, "an axis of shape %s", op_shape_text(c, op_value(c, axis)->rank, op_value(c, axis)->dims));
  TRY(outer_call(c, input, &outer));
  TRY(try_axes(&outer, c, input, count, bodies, wrong));
  axis = op_alias(c, axis, op_value(c, axis)->dtype, 0, NULL);
  TRY(check_axis(c, axis, count, wrong));
  const value_id pair[] = {axis, op_constant_i64s(c, op_value(c, axis)->dtype, 0, NULL, &count, 1)};
  TRY(op_map(c, pair, 2, op_value(c, axis)->dtype, from_front, &choice));
  TRY(op_cast(c, choice, DTYPE_INT32, &choice));
  outer.effect = c->effect;
  TRY(lower_branches(&outer, choice, bodies, (uint32_t)count));
  c->effect = outer.effect;
  return OK;
}
