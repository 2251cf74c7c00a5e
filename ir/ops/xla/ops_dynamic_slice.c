/* ops_dynamic_slice.c: XLA's slices at places that the step computes. A window is moved until it lies within the
 * tensor, so no place is wrong; one that is larger than the tensor is. */
#include <string.h>

#include "ir/ops/arrange.h"

/* The index behind `at` when a window of `lengths` begins at `start`, moved into a tensor of `dims`. */
static void window_index(struct kb *kb, value_id start, int rank, const dim *dims, const dim *lengths, const expr_id *at, expr_id *index) {
  for (int d = 0; d < rank; d++) {
    expr_id last = kb_sub(kb, kb_dim(kb, dims[d]), kb_dim(kb, lengths[d]));
    expr_id from = expr_binary(kb->k, SCALAR_MAX, kb_element(kb, start, d), kb_int(kb, 0));
    index[d] = kb_add(kb, expr_binary(kb->k, SCALAR_MIN, from, last), at[d]);
  }
}

static status check_window(struct op_call *c, value_id start, int rank, const dim *dims, const dim *lengths) {
  int starts;
  TRY(op_vector_length(c, start, "start_indices", &starts));
  if (starts != rank)
    return fail(INVALID_ARGUMENT, "start_indices has %d elements, and the input %d dimensions", starts, rank);
  for (int d = 0; d < rank; d++)
    TRY(op_require_le(c, lengths[d], dims[d],
                      arena_printf(op_arena(c), "slice size %%d greater than dimension size %%d in dimension %d", d)));
  return OK;
}

/* input, start_indices, size_indices */
status build_dynamic_slice(struct op_call *c) {
  value_id v, start, size;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &start));
  TRY(op_input(c, 2, &size));
  struct flow_value x = *op_value(c, v);
  dim lengths[LIMIT_RANK];
  TRY(op_sizes(c, size, "size_indices", x.rank, lengths));
  TRY(check_window(c, start, x.rank, x.dims, lengths));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, lengths);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, lengths, at);
  window_index(&kb, start, x.rank, x.dims, lengths, at, from);
  kb_store(&kb, out, at, kb_load(&kb, in, from));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* input, update, indices */
status build_dynamic_update_slice(struct op_call *c) {
  value_id v, update, start;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &update));
  TRY(op_input(c, 2, &start));
  struct flow_value x = *op_value(c, v), u = *op_value(c, update);
  if (x.rank != u.rank)
    return fail(INVALID_ARGUMENT, "input and update must have the same rank, input: %s; update: %s", op_shape_text(c, x.rank, x.dims),
                op_shape_text(c, u.rank, u.dims));
  TRY(check_window(c, start, x.rank, x.dims, u.dims));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t old = kb_in(&kb, v), in = kb_in(&kb, update), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], to[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  kb_store(&kb, out, at, kb_load(&kb, old, at));
  kb_close(&kb, x.rank);
  kb_loops(&kb, LOOP_PAR, u.rank, u.dims, at);
  window_index(&kb, start, x.rank, x.dims, u.dims, at, to);
  kb_store(&kb, out, to, kb_load(&kb, in, at));
  kb_close(&kb, u.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
