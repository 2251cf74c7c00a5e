/* ops_svd.c: singular values: of small matrices, whose sizes are known, by Jacobi's rotations (jacobi.h), which give their vectors Eigen's
 * signs; of all others from a bidiagonal form (bidiagonal.h). */
#include <string.h>

#include "ir/ops/linalg/householder.h"
#include "ir/ops/linalg/svd.h"

#define SMALL 16 /* from this size on the bidiagonal form; Eigen's limit */

/* Whether both sizes are known and the smaller one is small. */
static bool is_small(struct op_call *c, const struct flow_value *x) {
  int64_t rows = op_dim_value(c, x->dims[x->rank - 2]), columns = op_dim_value(c, x->dims[x->rank - 1]);
  return rows >= 0 && columns >= 0 && (rows < SMALL || columns < SMALL);
}

status svd_factor(struct op_call *c, value_id in, const struct svd_wish *wish, struct svd_parts *out) {
  struct flow_value x = *op_value(c, in);
  if (x.rank < 2)
    return fail(INVALID_ARGUMENT, "input must be a matrix or a batch of them: %s", op_shape_text(c, x.rank, x.dims));
  return is_small(c, &x) ? svd_by_rotations(c, in, wish, out) : svd_by_steps(c, in, wish, out);
}

/* The first elements of the last axis, as the output's dtype. */
static status output_first(struct op_call *c, uint32_t output, value_id wide, dim count) {
  struct flow_value x = *op_value(c, wide);
  if (x.dtype == op_output_dtype(c, output) && dim_equal(op_dims(c), x.dims[x.rank - 1], count) == 1) {
    op_set_output(c, output, wide);
    return OK;
  }
  x.dims[x.rank - 1] = count;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, wide), o = kb_out(&kb, op_output_dtype(c, output), x.rank, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  store_as(&kb, o, at, kb_load(&kb, a, at));
  kb_close(&kb, x.rank);
  op_set_output(c, output, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* What TensorFlow gives where vectors were not asked for. */
static value_id no_vectors(struct op_call *c, enum dtype dtype) {
  static const double zero[2];
  return op_constant(c, dtype, 0, NULL, zero);
}

status build_svd(struct op_call *c) {
  value_id in;
  TRY(op_input(c, 0, &in));
  struct flow_value x = *op_value(c, in);
  struct svd_wish wish = {.vectors = node_attr_int(c->node, "compute_uv", 1), .dtype = x.dtype};
  struct svd_parts parts;
  wish.full = wish.vectors && node_attr_int(c->node, "full_matrices", 0);
  TRY(svd_factor(c, in, &wish, &parts));
  TRY(output_first(c, 0, parts.s, parts.count));
  if (wish.vectors) {
    TRY(output_first(c, 1, parts.u, wish.full ? x.dims[x.rank - 2] : parts.count));
    return output_first(c, 2, parts.v, wish.full ? x.dims[x.rank - 1] : parts.count);
  }
  op_set_output(c, 1, no_vectors(c, op_output_dtype(c, 1)));
  op_set_output(c, 2, no_vectors(c, op_output_dtype(c, 2)));
  return OK;
}
