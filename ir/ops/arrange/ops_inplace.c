/* ops_inplace.c: rows of a tensor replaced or added to (Inplace*), tensors without contents (Empty), indices of elements
 * in a shape (UnravelIndex). */
#include <string.h>

#include "ir/ops/arrange.h"

/* y = x; y[i, :] = v, y += v or y -= v; i is one row or a vector of rows. */
status build_inplace(struct op_call *c) {
  value_id v[3];
  for (uint32_t i = 0; i < 3; i++)
    TRY(op_input(c, i, &v[i]));
  struct flow_value x = *op_value(c, v[0]), rows = *op_value(c, v[1]), y = *op_value(c, v[2]);
  if (x.rank < 1 || rows.rank > 1 || y.rank != x.rank - 1 + rows.rank)
    return fail(INVALID_ARGUMENT, "x, i and v do not fit: %s, %s, %s", op_shape_text(c, x.rank, x.dims),
                op_shape_text(c, rows.rank, rows.dims), op_shape_text(c, y.rank, y.dims));
  for (int d = 0; d < y.rank; d++)
    TRY(op_equal_dims(c, y.dims[d], d < rows.rank ? rows.dims[0] : x.dims[d - rows.rank + 1], "rows of x and v"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v[0]), places = kb_in(&kb, v[1]), values = kb_in(&kb, v[2]), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], to[LIMIT_RANK], n = kb_dim(&kb, x.dims[0]);
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  kb_store(&kb, out, at, kb_load(&kb, in, at));
  kb_close(&kb, x.rank);
  kb_loops(&kb, LOOP_SEQ, rows.rank, rows.dims, at);
  to[0] = kb_get(&kb, kb_local(&kb, kb_mod(&kb, kb_index(&kb, kb_load(&kb, places, at)), n))); /* rows count from the end too */
  kb_loops(&kb, LOOP_PAR, x.rank - 1, x.dims + 1, at + rows.rank);
  memcpy(to + 1, at + rows.rank, sizeof *at * (size_t)(x.rank - 1));
  kb_store(&kb, out, to, kb_combine(&kb, OP_ROW(c, combine_row)->how, kb_load(&kb, out, to), kb_load(&kb, values, at)));
  kb_close(&kb, y.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* What TensorFlow leaves undefined is zero. */
status build_empty(struct op_call *c) {
  value_id shape;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &shape));
  TRY(op_shape_dims(c, shape, "shape", &rank, dims));
  return op_zeros(c, rank, dims);
}

/* out[d, i...] = place d of element indices[i...] */
status build_unravel_index(struct op_call *c) {
  value_id v, shape;
  int rank;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &shape));
  TRY(op_vector_length(c, shape, "dims", &rank));
  struct flow_value x = *op_value(c, v);
  if (x.rank > 1)
    return fail(INVALID_ARGUMENT, "The indices can only be scalar or vector.");
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "dims of more than %d elements", LIMIT_RANK);
  if (x.rank == 1)
    TRY(op_require_le(c, op_dim(c, 1), x.dims[0], "received empty tensor indices: at least %d is needed, got %d"));
  dim dims[2] = {op_dim(c, rank), x.dims[0]};
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank + 1, dims);
  expr_id total = kb_int(&kb, 1), at[1];
  for (int d = 0; d < rank; d++)
    total = kb_mul(&kb, total, kb_element(&kb, shape, d));
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  expr_id left = kb_index(&kb, kb_load(&kb, in, at));
  kb_check(&kb, kb_in_range(&kb, left, total), INVALID_ARGUMENT, "index is out of bound as with dims: %d is not in [0, %d)", left, total);
  for (int d = rank - 1; d >= 0; d--) {
    expr_id n = kb_element(&kb, shape, d), to[2] = {kb_int(&kb, d), x.rank ? at[0] : NO_EXPR};
    kb_store(&kb, out, to, real_element(expr_cast(kb.k, x.dtype, kb_mod(&kb, left, n))));
    left = kb_div(&kb, left, n);
  }
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
