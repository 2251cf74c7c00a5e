/* lower_dims.c: which sizes are known when, which may be taken for equal, and checks of those that must be. */
#include "ir/lower/lower_state.h"

value_id op_dims_value(struct op_call *c, enum dtype dtype, int rank, const dim *dims, int count) {
  struct kb kb;
  kb_begin(&kb, c, dtype);
  dim length = op_dim(c, count);
  uint32_t o = kb_out(&kb, dtype, rank, &length);
  for (int i = 0; i < count; i++) {
    expr_id at = kb_int(&kb, i);
    kb_store(&kb, o, &at, real_element(expr_cast(kb.k, dtype, kb_dim(&kb, dims[i]))));
  }
  value_id v = kb_value(&kb, o);
  status s = kb_finish(&kb);
  (void)s; /* a kernel without checks cannot fail */
  return v;
}

static void emit_equality_check(struct op_call *c, dim a, dim b, const char *what) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  kb.effect = true;
  expr_id x = kb_dim(&kb, a), y = kb_dim(&kb, b);
  kb_check(&kb, expr_binary(kb.k, SCALAR_EQ, x, y), INVALID_ARGUMENT, arena_printf(c->lw->arena, "%s: %%d and %%d must agree", what), x, y);
  status s = kb_finish(&kb);
  (void)s;
  c->guard = c->effect;
}

bool op_dim_is_late(struct op_call *c, dim d) {
  return dim_has_symbol_from(c->lw->dims, dim_resolve(c->lw->dims, d), c->lw->facts.feed_symbols);
}

bool op_may_unify(struct op_call *c, dim a, dim b) {
  uint32_t x, y;
  bool is_a = dim_is_symbol(c->lw->dims, dim_resolve(c->lw->dims, a), &x),
       is_b = dim_is_symbol(c->lw->dims, dim_resolve(c->lw->dims, b), &y);
  uint32_t newer = is_a && is_b ? (x > y ? x : y) : is_a ? x : y;
  uint32_t later = newer < c->lw->facts.feed_symbols ? c->lw->facts.feed_symbols : newer + 1;
  dim formula = dim_resolve(c->lw->dims, is_a ? b : a);
  if (is_a != is_b && (dim_has_symbol(c->lw->dims, formula, newer) || dim_has_symbol_from(c->lw->dims, formula, later)))
    /* n is not min(n, 1); a feed's size cannot wait for what is computed from it, nor a computed one for those after it: it is bound
     * before they are */
    return false;
  return (is_a || is_b) && !c->guards && newer >= c->lw->facts.branch_symbols;
}

status op_equal_dims(struct op_call *c, dim a, dim b, const char *what) {
  dim_isolate(c->lw->dims, &a, &b);
  int equal = dim_equal(c->lw->dims, a, b);
  if (equal == 1)
    return OK;
  if (equal == 0)
    return fail(INVALID_ARGUMENT, "%s: %s and %s must agree", what, dim_text(c->lw->dims, dim_resolve(c->lw->dims, a)),
                dim_text(c->lw->dims, dim_resolve(c->lw->dims, b)));
  if (!op_may_unify(c, a, b) || !dim_unify(c->lw->dims, a, b))
    emit_equality_check(c, a, b, what);
  return OK;
}

status op_same_shape(struct op_call *c, value_id a, value_id b, const char *what) {
  struct flow_value x = *op_value(c, a), y = *op_value(c, b);
  if (x.rank != y.rank)
    return fail(INVALID_ARGUMENT, "%s: %s and %s", what, op_shape_text(c, x.rank, x.dims), op_shape_text(c, y.rank, y.dims));
  for (int i = 0; i < x.rank; i++)
    TRY(op_equal_dims(c, x.dims[i], y.dims[i], what));
  return OK;
}

bool op_dim_is_outer(struct op_call *c, dim d) {
  if (d == NO_DIM)
    return false;
  return !c->lw->walk.region_depth || !dim_has_symbol_from(c->lw->dims, dim_resolve(c->lw->dims, d), c->lw->facts.outer_symbols);
}

struct flow_value op_lasting_shape(struct op_call *c, const struct flow_value *x, bool row) {
  int first = row && x->rank > 0;
  struct flow_value shape = {.dtype = x->dtype, .rank = x->rank - first};
  for (int d = 0; d < shape.rank; d++)
    shape.dims[d] = op_dim_is_outer(c, x->dims[d + first]) ? x->dims[d + first] : NO_DIM;
  return shape;
}
