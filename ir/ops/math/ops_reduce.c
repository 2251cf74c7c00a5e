/* ops_reduce.c: reductions over axes: the REDUCE rows. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/kernel/formula_words.h"

struct element f_mean(struct formula *f, struct element sum, expr_id n) {
  enum dtype part = element_dtype(f, sum);
  expr_id count = expr_cast(f->kernel, part, n);
  if (!dtype_is_float(part) || sum.im) /* an empty mean of integers is 0, not a fault; so is a complex one, not NaN */
    count = expr_binary(f->kernel, SCALAR_MAX, count, expr_int(f->kernel, part, 1));
  struct element r = {expr_binary(f->kernel, SCALAR_DIV, sum.re, count), NO_EXPR};
  if (sum.im)
    r.im = expr_binary(f->kernel, SCALAR_DIV, sum.im, count);
  return r;
}

/* Half and bfloat16 are summed in float, and integers of means in 64 bits, as TensorFlow does. */
enum dtype op_accumulator_dtype(const struct reduce_row *row, enum dtype dtype) {
  if (dtype == DTYPE_HALF || dtype == DTYPE_BFLOAT16)
    return DTYPE_FLOAT;
  return row->is_wide && dtype_is_integer(dtype) ? dtype_is_unsigned(dtype) ? DTYPE_UINT64 : DTYPE_INT64 : dtype;
}

/* The accumulator's next value. The parts of a complex product depend on each other: both are computed before either is set. */
void op_set_accumulator(struct kb *kb, uint32_t re, uint32_t im, struct element next) {
  if (next.im && (expr_reads_local(kb->k, next.re, im) || expr_reads_local(kb->k, next.im, re)))
    next.im = kb_get(kb, kb_local(kb, next.im));
  kb_set(kb, re, next.re);
  if (next.im)
    kb_set(kb, im, next.im);
}

status op_reduce(struct op_call *c, value_id v, const bool *reduced, bool keep, const struct reduce_row *row, value_id *out) {
  struct flow_value x = *op_value(c, v);
  dim out_dims[LIMIT_RANK], n = op_dim(c, 1);
  int out_rank = 0;
  for (int i = 0; i < x.rank; i++) {
    if (!reduced[i] || keep)
      out_dims[out_rank++] = reduced[i] ? op_dim(c, 1) : x.dims[i];
    if (reduced[i])
      n = dim_mul(op_dims(c), n, x.dims[i]);
  }
  enum dtype acc_dtype = op_accumulator_dtype(row, x.dtype);
  struct kb kb;
  kb_begin(&kb, c, acc_dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, out_rank, out_dims);
  expr_id index[LIMIT_RANK], out_index[LIMIT_RANK];
  int open = 0;
  out_rank = 0;
  for (int i = 0; i < x.rank; i++) {
    if (!reduced[i])
      index[i] = kb_for_dim(&kb, LOOP_PAR, x.dims[i]), open++;
    if (!reduced[i] || keep)
      out_index[out_rank++] = reduced[i] ? kb_int(&kb, 0) : index[i];
  }
  struct element start = row->start(&kb.f);
  uint32_t re = kb_local(&kb, start.re), im = start.im ? kb_local(&kb, start.im) : 0;
  int red = 0;
  for (int i = 0; i < x.rank; i++)
    if (reduced[i])
      index[i] = kb_for_dim(&kb, LOOP_RED, x.dims[i]), red++;
  struct element acc = {kb_get(&kb, re), start.im ? kb_get(&kb, im) : NO_EXPR};
  struct element next = row->combine(&kb.f, acc, f_cast(&kb.f, acc_dtype, kb_load(&kb, a, index)));
  op_set_accumulator(&kb, re, im, next);
  kb_close(&kb, red);
  kb_store(&kb, o, out_index, f_cast(&kb.f, x.dtype, row->finish(&kb.f, acc, kb_dim(&kb, n))));
  kb_close(&kb, open);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

static bool axes_are_known(struct op_call *c, value_id axes) {
  const struct flow_value *x = op_value(c, axes);
  dim *e;
  int count;
  if (x->rank > 1 || !op_has_known_elements(c, axes, &e, &count))
    return false;
  for (int i = 0; i < count; i++)
    if (op_dim_value(c, e[i]) < 0 && !(e[i] != NO_DIM && dim_is_const(op_dims(c), e[i], NULL)))
      return false;
  return true;
}

status build_reduce(struct op_call *c) {
  value_id v, axes, out;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &axes));
  int64_t *list;
  int count, axis, rank = op_value(c, v)->rank;
  if (!axes_are_known(c, axes))
    return op_reduce_at_runtime(c, v, axes, node_attr_int(c->node, "keep_dims", 0), c->row->data);
  TRY(op_const_ints(c, axes, "the axes of a reduction", &list, &count));
  bool reduced[LIMIT_RANK] = {false};
  for (int i = 0; i < count; i++) {
    if (list[i] < -rank || list[i] >= rank)
      return fail(INVALID_ARGUMENT, "Invalid reduction dimension (%lld for input with %d dimension(s)", (long long)list[i], rank);
    TRY(op_axis(c, list[i], rank, &axis));
    if (reduced[axis])
      return fail(INVALID_ARGUMENT, "Invalid reduction arguments: Axes contains duplicate dimension: %d", axis);
    reduced[axis] = true;
  }
  bool keep = node_attr_int(c->node, "keep_dims", 0);
  if (count == 0) {
    out = v;
    if (strcmp(c->node->op, "EuclideanNorm") == 0) /* |x| of each element */
      TRY(op_reduce(c, v, reduced, true, c->row->data, &out));
  } else {
    TRY(op_reduce(c, v, reduced, keep, c->row->data, &out));
  }
  op_set_output(c, 0, out);
  return OK;
}
