/* svd.h: A = U diag(s) V*, for what is made of it besides the op. */
#ifndef TFC_IR_OPS_LINALG_SVD_H
#define TFC_IR_OPS_LINALG_SVD_H

#include "ir/lower/lower.h"

/* s is double [..., count or more], descending; u and v (double or complex, [..., rows, count or more] and [..., columns, count or
 * more]) hold the vectors in their first `count` columns. */
struct svd_parts {
  value_id s, u, v;
  dim count; /* the smaller size of A */
};
/* INVALID_ARGUMENT when `in` is no matrix. */
status svd_factor(struct op_call *c, value_id in, struct svd_parts *out);

#endif
