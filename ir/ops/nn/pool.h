/* pool.h: the geometry of pooling windows, shared by the pools, their gradients and those by position. Private to ir/ops. */
#ifndef TFC_IR_OPS_NN_POOL_H
#define TFC_IR_OPS_NN_POOL_H

#include "ir/ops/window.h"

struct pool {
  int rank;
  struct window_axis axes[LIMIT_RANK];
  bool slides[LIMIT_RANK]; /* false: the axis passes through */
  bool disjoint;           /* windows do not overlap */
  dim in[LIMIT_RANK], out[LIMIT_RANK];
};

/* `dims` are those of what is pooled; ksize and strides are attributes, or inputs first_input and the next (UINT32_MAX: none). */
status pool_begin(struct op_call *c, int rank, const dim *dims, uint32_t first_input, struct pool *p);
/* v must have the shape of what is pooled, or of the result. INVALID_ARGUMENT naming `what`. */
status pool_check(struct op_call *c, const struct pool *p, value_id v, bool output, const char *what);
/* How many elements of the window of an output are inside, as a float of dtype. */
expr_id pool_count(struct kb *kb, const struct pool *p, const expr_id *out, enum dtype dtype);
/* Whether each element of the input is known to lie in a window. */
bool pool_covers(struct op_call *c, const struct pool *p);

#endif
