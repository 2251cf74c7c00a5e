/* pool.h: the geometry of pooling windows, shared by the pools, their gradients and those by position. Private to ir/ops. */
#ifndef TFC_IR_OPS_NN_POOL_H
#define TFC_IR_OPS_NN_POOL_H

#include "ir/ops/window.h"

struct pool {
  int rank;
  struct window_axis axes[LIMIT_RANK];
  bool slides[LIMIT_RANK]; /* false: the axis passes through */
  bool disjoint;           /* windows do not overlap */
  bool is_explicit;        /* the node says its paddings */
  dim in[LIMIT_RANK], out[LIMIT_RANK];
};

/* `dims` are those of what is pooled; ksize and strides are attributes, or inputs first_input and the next (UINT32_MAX: none). */
status pool_begin(struct op_call *c, int rank, const dim *dims, uint32_t first_input, struct pool *p);
/* v must have the shape of what is pooled, or of the result. INVALID_ARGUMENT naming `what`. */
status pool_check(struct op_call *c, const struct pool *p, value_id v, bool output, const char *what);
/* How many elements of the window of an output are inside, as a float of dtype. */
expr_id pool_count(struct kb *kb, const struct pool *p, const expr_id *out, enum dtype dtype);
/* Opens the loops over a window. at: the input position, or, where the window reaches beyond the border, its own element there once more;
 * k: the element of the window along each axis that slides; inside: whether the position is none of those beyond. NULL: not asked. Returns
 * how many. */
int pool_window_loops(struct kb *kb, const struct pool *p, enum loop_kind loop, const expr_id *out, expr_id *at, expr_id *k,
                      expr_id *inside);
void pool_fill_zero(struct kb *kb, const struct pool *p, uint32_t out); /* of the input's shape */
/* Whether each element of the input is known to lie in a window. */
bool pool_covers(struct op_call *c, const struct pool *p);

#endif
