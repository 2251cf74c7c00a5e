/* xla_window.c: see xla.h. */
#include "ir/ops/xla/xla.h"

/* Places of n elements that are `by` apart: (n - 1) * by + 1, and none for none. */
static dim spread_size(struct op_call *c, dim n, int64_t by) {
  struct dim_table *t = op_dims(c);
  if (by == 1)
    return n;
  dim spread = dim_add(t, dim_mul(t, dim_sub(t, n, op_dim(c, 1)), op_dim(c, by)), op_dim(c, 1));
  return dim_max(t, spread, op_dim(c, 0));
}

dim xla_window_count(struct op_call *c, const struct xla_window *w) {
  struct dim_table *t = op_dims(c);
  int64_t reach = w->size ? (w->size - 1) * w->dilation + 1 : 0;
  dim room = dim_add(t, spread_size(c, w->in, w->base), op_dim(c, w->low + w->high - reach));
  dim count = dim_add(t, dim_floordiv(t, room, op_dim(c, w->stride)), op_dim(c, 1));
  return dim_max(t, count, op_dim(c, 0));
}

expr_id xla_window_place(struct kb *kb, const struct xla_window *w, expr_id o, expr_id k, expr_id *inside) {
  expr_id at = kb_add(kb, kb_mul(kb, o, kb_int(kb, w->stride)), kb_mul(kb, k, kb_int(kb, w->dilation)));
  expr_id n = kb_dim(kb, w->in), place = kb_sub(kb, at, kb_int(kb, w->low));
  *inside = expr_int(kb->k, DTYPE_BOOL, 1);
  if (w->base != 1) {
    expr_id base = kb_int(kb, w->base);
    *inside = kb_eq(kb, kb_mod(kb, place, base), kb_int(kb, 0));
    place = kb_div(kb, place, base);
  }
  *inside = kb_and(kb, *inside, kb_in_range(kb, place, n));
  return kb_clamp(kb, place, n);
}
