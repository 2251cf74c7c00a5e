/* ops_select_rank.c: which elements are largest: ArgMax, InTopK; and L2Loss, a reduction with a form of its own. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"

/* ---- ArgMax, ArgMin ---- */

static struct element finite_limit(struct formula *f, bool lowest) {
  enum dtype d = f->dtype;
  double top = d == DTYPE_DOUBLE ? 0x1.fffffffffffffp1023 : d == DTYPE_FLOAT ? 0x1.fffffep127 : d == DTYPE_HALF ? 65504 : 0x1.fep127;
  if (!dtype_is_float(d))
    return lowest ? f_lowest(f) : f_highest(f);
  return f_const(f, lowest ? -top : top);
}

/* The first of equal elements; NaN is never chosen. */
status build_arg_max(struct op_call *c) {
  value_id v, va;
  int64_t wanted;
  int axis;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &va));
  struct flow_value x = *op_value(c, v);
  TRY(op_const_axis(c, va, "dimension", x.rank, &wanted));
  TRY(op_axis(c, wanted, x.rank, &axis));
  bool is_max = OP_ROW(c, arg_row)->largest;
  dim dims[LIMIT_RANK];
  for (int i = 0, n = 0; i < x.rank; i++)
    if (i != axis)
      dims[n++] = x.dims[i];
  TRY(op_require_le(c, op_dim(c, 1), x.dims[axis],
                    arena_printf(op_arena(c), "Reduction axis %d is empty in shape %s", axis, op_shape_text(c, x.rank, x.dims))));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  enum dtype out = op_output_dtype(c, 0);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, out, x.rank - 1, dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 1, dims, index);
  for (int i = 0, n = 0; i < x.rank; i++)
    if (i != axis)
      at[i] = index[n++];
  struct accumulator best = acc_begin(&kb, finite_limit(&kb.f, is_max));
  uint32_t where = kb_local(&kb, kb_int(&kb, 0));
  at[axis] = kb_for_dim(&kb, LOOP_SEQ, x.dims[axis]);
  struct element e = kb_load(&kb, a, at), old = acc_get(&kb, &best);
  struct element better = is_max ? f_binary(&kb.f, SCALAR_LT, old, e) : f_binary(&kb.f, SCALAR_LT, e, old);
  kb_set(&kb, where, expr_select(kb.k, better.re, at[axis], kb_get(&kb, where)));
  acc_set(&kb, &best, f_select(&kb.f, better, e, old));
  kb_close(&kb, 1);
  kb_store(&kb, o, index, real_element(expr_cast(kb.k, out, kb_get(&kb, where))));
  kb_close(&kb, x.rank - 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* ---- L2Loss: half the sum of squares ---- */

status build_l2_loss(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  struct kb kb;
  enum dtype sum = sum_dtype(x.dtype);
  kb_begin(&kb, c, sum);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, 0, NULL);
  expr_id index[LIMIT_RANK];
  struct accumulator acc = acc_zero(&kb, sum);
  kb_loops(&kb, LOOP_RED, x.rank, x.dims, index);
  struct element e = load_as(&kb, sum, a, index);
  acc_add(&kb, &acc, f_binary(&kb.f, SCALAR_MUL, e, e));
  kb_close(&kb, x.rank);
  store_as(&kb, o, index, f_binary(&kb.f, SCALAR_MUL, acc_get(&kb, &acc), f_const(&kb.f, 0.5)));
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- InTopK: whether fewer than k classes have a larger prediction than the target's ---- */

static struct element is_finite(struct formula *f, struct element e) {
  return f_binary(f, SCALAR_LT, f_unary(f, SCALAR_ABS, e), f_const_like(f, e, INFINITY));
}

/* k of InTopK and TopK is an attribute, of their second versions an input. */
static expr_id load_k(struct kb *kb, value_id vk) {
  if (vk == NO_VALUE)
    return kb_int(kb, node_attr_int(kb->c->node, "k", 0));
  uint32_t buffer = kb_in(kb, vk);
  return kb_index(kb, kb_load(kb, buffer, NULL));
}

status build_in_top_k(struct op_call *c) {
  value_id vp, vt, vk = NO_VALUE;
  TRY(op_input(c, 0, &vp));
  TRY(op_input(c, 1, &vt));
  if (c->in_count > 2)
    TRY(op_input(c, 2, &vk));
  struct flow_value p = *op_value(c, vp), t = *op_value(c, vt);
  if (p.rank != 2 || t.rank != 1)
    return fail(INVALID_ARGUMENT, "predictions must be 2-dimensional and targets 1-dimensional: %s and %s",
                op_shape_text(c, p.rank, p.dims), op_shape_text(c, t.rank, t.dims));
  TRY(op_equal_dims(c, p.dims[0], t.dims[0], "First dimension of predictions must match length of targets"));
  struct kb kb;
  kb_begin(&kb, c, p.dtype);
  uint32_t a = kb_in(&kb, vp), b = kb_in(&kb, vt), o = kb_out(&kb, DTYPE_BOOL, 1, p.dims);
  expr_id k = load_k(&kb, vk), width = kb_dim(&kb, p.dims[1]), index[2];
  index[0] = kb_for_dim(&kb, LOOP_PAR, p.dims[0]);
  expr_id row = index[0], target = kb_index(&kb, kb_load(&kb, b, index));
  expr_id within = kb_and(&kb, expr_binary(kb.k, SCALAR_LE, kb_int(&kb, 0), target), kb_lt(&kb, target, width));
  uint32_t others = kb_local(&kb, expr_int(kb.k, DTYPE_INT32, 0)), more = kb_local(&kb, expr_int(kb.k, DTYPE_INT32, 0));
  index[1] = kb_for_dim(&kb, LOOP_RED, p.dims[1]);
  struct element e = kb_load(&kb, a, index);
  struct element own = kb_load(&kb, a, (expr_id[]){row, kb_clamp(&kb, target, width)});
  struct element is_other = f_unary(&kb.f, SCALAR_NOT, is_finite(&kb.f, e)), is_larger = f_binary(&kb.f, SCALAR_LT, own, e);
  kb_set(&kb, others, kb_add(&kb, kb_get(&kb, others), expr_cast(kb.k, DTYPE_INT32, is_other.re)));
  kb_set(&kb, more, kb_add(&kb, kb_get(&kb, more), expr_cast(kb.k, DTYPE_INT32, is_larger.re)));
  kb_close(&kb, 1);
  expr_id is_finite_row = expr_binary(kb.k, SCALAR_EQ, kb_get(&kb, others), expr_int(kb.k, DTYPE_INT32, 0));
  expr_id is_among = kb_lt(&kb, expr_cast(kb.k, DTYPE_INT64, kb_get(&kb, more)), k);
  kb_store(&kb, o, index, real_element(kb_and(&kb, kb_and(&kb, within, is_finite_row), is_among)));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
