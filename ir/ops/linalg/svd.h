/* svd.h: A = U diag(s) V*, for what is made of it besides the op. */
#ifndef TFC_IR_OPS_LINALG_SVD_H
#define TFC_IR_OPS_LINALG_SVD_H

#include "ir/lower/lower.h"

struct svd_wish {
  bool vectors, full; /* full: the vectors of all rows and columns */
  enum dtype dtype;   /* that the vectors are wanted in */
};
/* s is double [..., count or more], descending; u and v (NO_VALUE unless wished for; of the wished dtype or a wider one) hold the vectors
 * in their columns, as many as wished for or more. */
struct svd_parts {
  value_id s, u, v;
  dim count; /* the smaller size of A */
};
/* INVALID_ARGUMENT when `in` is no matrix. */
status svd_factor(struct op_call *c, value_id in, const struct svd_wish *wish, struct svd_parts *out);

/* The two ways: by rotations from both sides, of known sizes (dim_less), or through a bidiagonal form. `in` has two axes or more. */
status svd_by_rotations(struct op_call *c, value_id in, const struct svd_wish *wish, struct svd_parts *out);
status svd_by_steps(struct op_call *c, value_id in, const struct svd_wish *wish, struct svd_parts *out);

#endif
