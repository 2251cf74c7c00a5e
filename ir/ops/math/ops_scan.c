/* ops_scan.c: running sums, products and log-sum-exps along an axis: one sequential loop for each line. */
#include <math.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/op_rows.h"

/* log(e^a + e^b), from the larger one; of two -inf: -inf. */
static struct element log_sum_exp(struct formula *f, struct element a, struct element b) {
  struct element large = f_binary(f, SCALAR_MAX, a, b), small = f_binary(f, SCALAR_MIN, a, b);
  struct element equal = f_binary(f, SCALAR_EQ, large, small);
  struct element away = f_select(f, equal, f_const(f, 0), f_binary(f, SCALAR_SUB, small, large));
  struct element rest = f_unary(f, SCALAR_LOG1P, f_unary(f, SCALAR_EXP, away));
  return f_binary(f, SCALAR_ADD, large, rest);
}

static struct element combine(struct formula *f, enum scan scan, struct element acc, struct element x) {
  switch (scan) {
  case SCAN_SUM: return f_binary(f, SCALAR_ADD, acc, x);
  case SCAN_PRODUCT: return f_binary(f, SCALAR_MUL, acc, x);
  case SCAN_LOG_SUM_EXP: break;
  }
  return log_sum_exp(f, acc, x);
}

status build_cumsum(struct op_call *c) {
  value_id v, va;
  int64_t wanted;
  int axis;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &va));
  struct flow_value x = *op_value(c, v);
  TRY(op_const_axis(c, va, "axis", x.rank, &wanted));
  TRY(op_axis(c, wanted, x.rank, &axis));
  bool exclusive = node_attr_int(c->node, "exclusive", 0), reverse = node_attr_int(c->node, "reverse", 0);
  enum scan scan = OP_ROW(c, scan_row)->scan;
  enum dtype sum = scan == SCAN_LOG_SUM_EXP ? sum_dtype(x.dtype) : x.dtype;
  struct kb kb;
  kb_begin(&kb, c, sum);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  for (int i = 0; i < x.rank; i++)
    if (i != axis)
      index[i] = kb_for_dim(&kb, LOOP_PAR, x.dims[i]);
  struct element start = scan == SCAN_LOG_SUM_EXP ? f_const(&kb.f, -INFINITY) : f_const(&kb.f, scan == SCAN_PRODUCT);
  struct accumulator acc = acc_begin(&kb, start);
  index[axis] = kb_for_dim(&kb, LOOP_SEQ, x.dims[axis]);
  if (reverse)
    index[axis] = kb_sub(&kb, kb_sub(&kb, kb_dim(&kb, x.dims[axis]), kb_int(&kb, 1)), index[axis]);
  struct accumulator e = acc_begin(&kb, load_as(&kb, sum, a, index));
  if (exclusive)
    store_as(&kb, o, index, acc_get(&kb, &acc));
  acc_set(&kb, &acc, combine(&kb.f, scan, acc_get(&kb, &acc), acc_get(&kb, &e)));
  if (!exclusive)
    store_as(&kb, o, index, acc_get(&kb, &acc));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
