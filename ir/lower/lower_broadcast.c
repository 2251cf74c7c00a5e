/* lower_broadcast.c: sizes that meet in an element-wise op. Where one is 1 while compiling the other is the result's; where both are
 * known they must agree. Of sizes that are not known either may turn out to be 1.
 *
 * That is rare, and a loop that allows for it is slower, so an entry is first compiled as if such sizes were equal. When that
 * was assumed of sizes of feeds (struct lower_findings), a variant of the entry is compiled that assumes nothing, and the runtime
 * takes it for feeds that do not fit the first. There the size of the result is
 *     max(a, b) * min(a, b, 1)
 * a check makes sure that a and b agree or one of them is 1, and a load is clamped to the last element (kb_load_broadcast),
 * which is the only one where the size is 1. The same is done at once where nothing may be assumed: on one side of a cond, and of
 * sizes that each turn of a loop has anew: those of a slice that grows are 1 at first. */
#include <string.h>

#include "ir/lower/lower_state.h"

/* Sizes that met before: `out` already has the size of both. */
static bool met_before(struct op_call *c, dim out, dim with) {
  for (uint32_t i = 0; i < c->lw->facts.met.count; i++) {
    const struct met_dims *m = &c->lw->facts.met.items[i];
    if (m->out == out && (m->a == with || m->b == with))
      return true;
  }
  return false;
}

static void check_sizes(struct op_call *c, dim a, dim b) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  kb.effect = true;
  expr_id x = kb_dim(&kb, a), y = kb_dim(&kb, b), one = kb_int(&kb, 1);
  expr_id any = expr_binary(kb.k, SCALAR_OR, expr_binary(kb.k, SCALAR_EQ, x, one), expr_binary(kb.k, SCALAR_EQ, y, one));
  kb_check(&kb, expr_binary(kb.k, SCALAR_OR, expr_binary(kb.k, SCALAR_EQ, x, y), any), INVALID_ARGUMENT,
           "Incompatible shapes: sizes %d and %d", x, y);
  status s = kb_finish(&kb);
  (void)s; /* a check that is an effect is not evaluated while compiling */
  c->guard = c->effect;
}

static void meet(struct op_call *c, dim a, dim b, dim *out) {
  struct dim_table *t = c->lw->dims;
  if (met_before(c, a, b) || met_before(c, b, a)) {
    *out = met_before(c, a, b) ? a : b;
    return;
  }
  for (uint32_t i = 0; i < c->lw->facts.met.count && !c->guards && !c->lw->walk.region_depth; i++) {
    const struct met_dims *m = &c->lw->facts.met.items[i];
    if (m->checked && ((m->a == a && m->b == b) || (m->a == b && m->b == a))) {
      *out = m->out;
      return;
    }
  }
  check_sizes(c, a, b);
  dim one = op_dim(c, 1);
  *out = dim_mul(t, dim_max(t, a, b), dim_min(t, dim_min(t, a, one), dim_min(t, b, one)));
  vec_push(&c->lw->facts.met, (struct met_dims){*out, a, b, !c->guards && !c->lw->walk.region_depth});
}

void op_note_given(struct op_call *c, dim d) {
  if (op_dim_is_late(c, d))
    vec_push(&c->lw->facts.given, d);
}

static bool is_given(struct op_call *c, dim d) {
  for (uint32_t i = 0; i < c->lw->facts.given.count; i++)
    if (dim_equal(c->lw->dims, c->lw->facts.given.items[i], d) == 1)
      return true;
  return false;
}

static bool is_known_to_lack_one(struct op_call *c, dim d) { return dim_equal(c->lw->dims, d, op_dim(c, 1)) == 0; }

bool op_may_assume_equal(struct op_call *c, dim a, dim b) {
  bool varies = !op_dim_is_outer(c, a) || !op_dim_is_outer(c, b);
  return !varies && !c->lw->options->broadcasts && dim_equal(c->lw->dims, a, b) < 0 && op_may_unify(c, a, b) && !is_given(c, a) &&
         !is_given(c, b);
}

bool op_assume_equal(struct op_call *c, dim a, dim b) {
  int equal = dim_equal(c->lw->dims, a, b);
  if (equal >= 0 || op_dim_is_late(c, a) || op_dim_is_late(c, b))
    return equal != 0;
  dim_isolate(c->lw->dims, &a, &b);
  if (c->lw->options->broadcasts || !op_may_unify(c, a, b)) /* a check in the step chooses no variant */
    return false;
  c->lw->found.assumed = true;
  return true;
}

static status broadcast_dim(struct op_call *c, dim a, dim b, bool may_meet, dim *out) {
  int64_t x = op_dim_value(c, a), y = op_dim_value(c, b);
  if (x == 1 || y == 1) {
    *out = x == 1 ? b : a;
    return OK;
  }
  a = dim_resolve(c->lw->dims, a), b = dim_resolve(c->lw->dims, b);
  *out = x >= 0 ? a : b;
  int equal = dim_equal(c->lw->dims, a, b);
  if (equal == 1 || !may_meet || (is_known_to_lack_one(c, a) && is_known_to_lack_one(c, b)))
    return op_equal_dims(c, a, b, "broadcast");
  if (!op_may_assume_equal(c, a, b)) { /* n and n + 1 fit where one of them is 1 */
    meet(c, a, b, out);
    return OK;
  }
  c->lw->found.assumed = true;
  return op_equal_dims(c, a, b, "broadcast");
}

status op_broadcast_dim(struct op_call *c, dim a, dim b, dim *out) { return broadcast_dim(c, a, b, true, out); }

static status broadcast(struct op_call *c, value_id a, value_id b, bool may_meet, int *rank, dim *dims) {
  struct flow_value x = *op_value(c, a), y = *op_value(c, b);
  *rank = x.rank > y.rank ? x.rank : y.rank;
  dim one = op_dim(c, 1);
  for (int i = 0; i < *rank; i++) {
    int ix = i - (*rank - x.rank), iy = i - (*rank - y.rank);
    if (broadcast_dim(c, ix < 0 ? one : x.dims[ix], iy < 0 ? one : y.dims[iy], may_meet, &dims[i]) != OK)
      return fail(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s", op_shape_text(c, x.rank, x.dims), op_shape_text(c, y.rank, y.dims));
  }
  return OK;
}

status op_broadcast(struct op_call *c, value_id a, value_id b, int *rank, dim *dims) { return broadcast(c, a, b, true, rank, dims); }

status op_broadcast_equal(struct op_call *c, value_id a, value_id b, int *rank, dim *dims) { return broadcast(c, a, b, false, rank, dims); }

status op_broadcast_into(struct op_call *c, dim a, dim target) {
  dim out;
  int64_t x = op_dim_value(c, a);
  if (x < 0 && op_dim_is_late(c, target) && dim_equal(c->lw->dims, a, target) < 0) { /* no variant could be chosen by it */
    meet(c, a, target, &out);
    return op_equal_dims(c, out, target, "broadcast");
  }
  TRY(broadcast_dim(c, a, target, true, &out));
  if (x == 1 || dim_equal(c->lw->dims, out, target) == 1)
    return OK;
  return op_equal_dims(c, out, target, "broadcast"); /* the target may not grow */
}
