/* ops_reduce_axes.c: reductions over axes that are known only when the step runs. The rank of the input is known, so a reduction is a
 * sum over all axes of which each is either kept or summed: for axis i of size x, `kept` is 1 or x, and `summed` is the other.
 * Both are computed from the axes and bound; the index into the input is the sum of the two loops' indices, one of which is 0. */
#include <string.h>

#include "ir/kernel/formula_words.h"
#include "ir/lower/lower_frame.h"
#include "ir/ops/arrange.h"
#include "ir/ops/op_rows.h"

/* Sets local i of `reduced` for each axis in the list, and checks them. */
static void read_axes(struct kb *kb, uint32_t axes, const struct flow_value *list, int rank, uint32_t marks) {
  expr_id zero = kb_int(kb, 0), size = kb_int(kb, rank), one = kb_int(kb, 1), at;
  for (int i = 0; i < rank; i++) {
    at = kb_int(kb, i);
    kb_store(kb, marks, &at, real_element(zero));
  }
  expr_id i = list->rank ? kb_for_dim(kb, LOOP_SEQ, list->dims[0]) : NO_EXPR;
  expr_id axis = kb_index(kb, kb_load(kb, axes, list->rank ? &i : NULL));
  kb_check(kb, kb_and(kb, expr_binary(kb->k, SCALAR_LE, kb_sub(kb, zero, size), axis), kb_lt(kb, axis, size)), INVALID_ARGUMENT,
           "Invalid reduction dimension (%d for input with %d dimension(s))", axis, size);
  at = expr_select(kb->k, kb_lt(kb, axis, zero), kb_add(kb, axis, size), axis);
  at = kb_get(kb, kb_local(kb, kb_clamp(kb, at, size)));
  kb_check(kb, expr_binary(kb->k, SCALAR_EQ, kb_load(kb, marks, &at).re, zero), INVALID_ARGUMENT,
           "Invalid reduction arguments: Axes contains duplicate dimension: %d", at, NO_EXPR);
  kb_store(kb, marks, &at, real_element(one));
  if (list->rank)
    kb_close(kb, 1);
}

/* The sizes of all axes as kept, then as summed; then, packed, those of the axes that stay (`left` of them; -1: not wanted). */
static status split_sizes(struct op_call *c, value_id v, value_id axes, int left, dim *kept, dim *summed, dim *packed) {
  struct flow_value x = *op_value(c, v), list = *op_value(c, axes);
  int total = 2 * x.rank + (left > 0 ? left : 0), count;
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  dim length = op_dim(c, total), rank = op_dim(c, x.rank), *bound;
  uint32_t a = kb_in(&kb, axes), o = kb_out(&kb, DTYPE_INT64, 1, &length), marks = kb_scratch(&kb, DTYPE_INT64, 1, &rank);
  read_axes(&kb, a, &list, x.rank, marks);
  uint32_t next = kb_local(&kb, kb_int(&kb, 2 * x.rank));
  for (int i = 0; i < x.rank; i++) {
    expr_id at = kb_int(&kb, i), second = kb_int(&kb, x.rank + i), size = kb_dim(&kb, x.dims[i]), one = kb_int(&kb, 1);
    expr_id is_reduced = expr_binary(kb.k, SCALAR_NE, kb_load(&kb, marks, &at).re, kb_int(&kb, 0));
    kb_store(&kb, o, &at, real_element(expr_select(kb.k, is_reduced, one, size)));
    kb_store(&kb, o, &second, real_element(expr_select(kb.k, is_reduced, size, one)));
    if (left <= 0)
      continue;
    kb_if(&kb, expr_unary(kb.k, SCALAR_NOT, is_reduced));
    expr_id place = kb_get(&kb, next);
    kb_store(&kb, o, &place, real_element(size));
    kb_set(&kb, next, kb_add(&kb, place, one));
    kb_close(&kb, 1);
  }
  value_id sizes = kb_value(&kb, o);
  TRY(kb_finish(&kb));
  TRY(op_elements(c, sizes, &bound, &count));
  memcpy(kept, bound, sizeof *bound * (size_t)x.rank);
  memcpy(summed, bound + x.rank, sizeof *bound * (size_t)x.rank);
  for (int i = 0; i < x.rank; i++)
    op_note_given(c, kept[i]); /* they are 1 where the axis is summed */
  if (left > 0)
    memcpy(packed, bound + 2 * x.rank, sizeof *bound * (size_t)left);
  return OK;
}

static status reduce_split(struct op_call *c, value_id v, const dim *kept, const dim *summed, const struct reduce_row *row, value_id *out) {
  struct flow_value x = *op_value(c, v);
  enum dtype dtype = op_accumulator_dtype(row, x.dtype);
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, kept);
  expr_id index[LIMIT_RANK], inner[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, kept, index);
  struct element start = row->start(&kb.f);
  uint32_t re = kb_local(&kb, start.re), im = start.im ? kb_local(&kb, start.im) : 0;
  kb_loops(&kb, LOOP_RED, x.rank, summed, inner);
  for (int i = 0; i < x.rank; i++)
    inner[i] = kb_add(&kb, inner[i], index[i]);
  struct element acc = {kb_get(&kb, re), start.im ? kb_get(&kb, im) : NO_EXPR};
  op_set_accumulator(&kb, re, im, row->combine(&kb.f, acc, f_cast(&kb.f, dtype, kb_load(&kb, a, inner))));
  kb_close(&kb, x.rank);
  expr_id count = kb_dim(&kb, op_count(c, x.rank, summed));
  kb_store(&kb, o, index, f_cast(&kb.f, x.dtype, row->finish(&kb.f, acc, count)));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

status op_reduce_at_runtime(struct op_call *c, value_id v, value_id axes, bool keep, const struct reduce_row *row) {
  struct flow_value x = *op_value(c, v), list = *op_value(c, axes);
  dim kept[LIMIT_RANK], summed[LIMIT_RANK], packed[LIMIT_RANK];
  value_id out;
  if (list.rank > 1)
    return fail(INVALID_ARGUMENT, "the axes of a reduction must be a scalar or a vector, not %s", op_shape_text(c, list.rank, list.dims));
  int64_t count = list.rank ? op_dim_value(c, list.dims[0]) : 1;
  if (count < 0 && !keep && !frame_only_takes(op_frame(c), c->node, 0, "Reshape"))
    TRY(op_const_size(c, list.dims[0], "the number of axes of a reduction", &count));
  if (x.rank == 0)
    TRY(op_require_le(c, list.rank ? list.dims[0] : op_dim(c, 1), op_dim(c, 0), "%d axes are reduced of an input with %d dimensions"));
  int left = keep || count < 0 ? -1 : x.rank - (int)count;
  if (!keep && count > x.rank)
    return fail(INVALID_ARGUMENT, "Invalid reduction arguments: %lld axes of %d", (long long)count, x.rank);
  TRY(split_sizes(c, v, axes, left, kept, summed, packed));
  TRY(reduce_split(c, v, kept, summed, row, &out));
  if (left >= 0)
    out = op_alias(c, out, x.dtype, left, packed);
  op_set_output(c, 0, out);
  c->out[0].rank_open = !keep && count < 0 ? list.dims[0] : NO_DIM;
  return OK;
}
