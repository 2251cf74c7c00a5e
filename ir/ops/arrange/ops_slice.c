/* ops_slice.c: parts of tensors: Slice, StridedSlice, its gradient and its assignment to variables. */
#include <string.h>

#include "ir/ops/arrange.h"

/* ---- reading ---- */

static bool takes_all(struct op_call *c, const struct sliced *s, const dim *dims) {
  for (int d = 0; d < s->rank; d++)
    if (s->stride[d] != 1 || dim_equal(op_dims(c), s->lengths[d], dims[d]) != 1)
      return false;
  return true;
}

static status copy_slice(struct op_call *c, value_id v, const struct sliced *s) {
  struct flow_value x = *op_value(c, v);
  if (takes_all(c, s, x.dims)) {
    op_set_output(c, 0, op_alias(c, v, x.dtype, s->out_rank, s->out_dims));
    return OK;
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, s->out_rank, s->out_dims);
  expr_id at[LIMIT_RANK], index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, s->out_rank, s->out_dims, at);
  kb_sliced_index(&kb, s, at, index);
  kb_store(&kb, out, at, kb_load(&kb, in, index));
  kb_close(&kb, s->out_rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_strided_slice(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  struct sliced s;
  TRY(op_strided(c, 1, x.rank, x.dims, &s));
  return copy_slice(c, v, &s);
}

/* ---- Slice: begin and size, -1 for all that is left ---- */

static status check_slice(struct op_call *c, const struct flow_value *x, value_id begin, value_id size) {
  struct kb guard;
  guard_begin(&guard, c);
  for (int d = 0; d < x->rank; d++) {
    expr_id n = kb_dim(&guard, x->dims[d]), b = kb_element(&guard, begin, d), s = kb_element(&guard, size, d);
    expr_id rest = kb_eq(&guard, s, kb_int(&guard, -1)), left = kb_sub(&guard, n, b);
    kb_check(&guard, kb_and(&guard, kb_le(&guard, kb_int(&guard, 0), b), kb_le(&guard, b, n)), INVALID_ARGUMENT,
             arena_printf(op_arena(c), "Expected begin[%d] in [0, %%d], but got %%d", d), n, b);
    expr_id fits = kb_and(&guard, kb_le(&guard, kb_int(&guard, 0), s), kb_le(&guard, s, left));
    kb_check(&guard, kb_or(&guard, rest, fits), INVALID_ARGUMENT,
             arena_printf(op_arena(c), "Expected size[%d] in [0, %%d], but got %%d", d), left, s);
  }
  return guard_finish(&guard);
}

static status slice_length(struct op_call *c, dim n, value_id begin, value_id size, int d, dim *out) {
  int64_t s;
  if (op_known_int(c, size, d, &s) && s >= 0) {
    *out = op_dim(c, s);
    return OK;
  }
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id rest = kb_sub(&kb, kb_dim(&kb, n), kb_element(&kb, begin, d)), own = kb_element(&kb, size, d);
  kb_store(&kb, o, NULL, real_element(kb_select(&kb, kb_lt(&kb, own, kb_int(&kb, 0)), rest, own)));
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, out);
}

static status element_scalar(struct op_call *c, value_id v, int i, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 0, NULL);
  kb_store(&kb, o, NULL, real_element(kb_element(&kb, v, i)));
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

status build_slice(struct op_call *c) {
  value_id v, begin, size;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &begin));
  TRY(op_input(c, 2, &size));
  struct flow_value x = *op_value(c, v);
  TRY(op_vector_of(c, &begin, x.rank, "begin"));
  TRY(op_vector_of(c, &size, x.rank, "size"));
  TRY(check_slice(c, &x, begin, size));
  struct sliced s = {.rank = x.rank, .out_rank = x.rank};
  for (int d = 0; d < x.rank; d++) {
    int64_t first;
    s.stride[d] = 1;
    s.axis[d] = d;
    if (!op_known_int(c, begin, d, &first) || first != 0)
      TRY(element_scalar(c, begin, d, &s.start[d]));
    TRY(slice_length(c, x.dims[d], begin, size, d, &s.lengths[d]));
    s.out_dims[d] = s.lengths[d];
  }
  return copy_slice(c, v, &s);
}

/* ---- writing ---- */

static status check_written(struct op_call *c, const struct sliced *s, const struct flow_value *value, bool broadcasts) {
  if (value->rank > s->out_rank || (!broadcasts && value->rank != s->out_rank))
    return fail(INVALID_ARGUMENT, "shape of the value was %s instead of %s", op_shape_text(c, value->rank, value->dims),
                op_shape_text(c, s->out_rank, s->out_dims));
  for (int i = 0; i < value->rank; i++)
    if (!broadcasts || op_dim_value(c, value->dims[i]) != 1)
      TRY(op_equal_dims(c, value->dims[i], s->out_dims[s->out_rank - value->rank + i], "the value and the slice"));
  return OK;
}

/* buffer[slice] = value, broadcast */
static void store_slice(struct kb *kb, uint32_t buffer, uint32_t value, const struct sliced *s) {
  expr_id at[LIMIT_RANK], index[LIMIT_RANK];
  kb_loops(kb, LOOP_PAR, s->out_rank, s->out_dims, at);
  kb_sliced_index(kb, s, at, index);
  kb_store(kb, buffer, index, kb_load_broadcast(kb, value, s->out_rank, at));
  kb_close(kb, s->out_rank);
}

status build_strided_slice_grad(struct op_call *c) {
  value_id shape, dy;
  TRY(op_input(c, 0, &shape));
  TRY(op_input(c, 4, &dy));
  struct flow_value y = *op_value(c, dy);
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_shape_dims(c, shape, "shape", &rank, dims));
  struct sliced s;
  TRY(op_strided(c, 1, rank, dims, &s));
  TRY(check_written(c, &s, &y, false));
  struct kb kb;
  kb_begin(&kb, c, y.dtype);
  uint32_t in = kb_in(&kb, dy), out = kb_out(&kb, y.dtype, rank, dims);
  kb_fill(&kb, out, rank, dims, kb_zero(&kb, y.dtype));
  store_slice(&kb, out, in, &s);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_strided_slice_assign(struct op_call *c) {
  uint32_t var;
  value_id value;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_input_var(c, 0, &var));
  TRY(op_input(c, 4, &value));
  TRY(op_updated_dims(c, 0, var, &rank, dims));
  struct flow_value x = *op_value(c, value);
  struct sliced s;
  TRY(op_strided(c, 1, rank, dims, &s));
  TRY(check_written(c, &s, &x, true));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, value), out = kb_var(&kb, var, BUFFER_INOUT, rank, dims);
  store_slice(&kb, out, in, &s);
  TRY(kb_finish(&kb));
  op_set_ref_output(c, var);
  return OK;
}

status build_tensor_strided_slice_update(struct op_call *c) {
  value_id v, value;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 4, &value));
  struct flow_value x = *op_value(c, v), y = *op_value(c, value);
  struct sliced s;
  TRY(op_strided(c, 1, x.rank, x.dims, &s));
  TRY(check_written(c, &s, &y, true));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t old = kb_in(&kb, v), in = kb_in(&kb, value), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  kb_store(&kb, out, at, kb_load(&kb, old, at));
  kb_close(&kb, x.rank);
  store_slice(&kb, out, in, &s);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
