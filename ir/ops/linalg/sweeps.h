/* sweeps.h: rows of matrices rotated in pairs (k, k + 1), sweep after sweep, as QR steps do with singular vectors and eigenvectors. The
 * rotations are kept until there are enough sweeps of them; then a few columns at a time, which stay in the caches, go through them all
 * (Van Zee, van de Geijn, Quintana-Orti: Restructuring the tridiagonal and bidiagonal QR algorithms for performance, 2014). */
#ifndef TFC_IR_OPS_LINALG_SWEEPS_H
#define TFC_IR_OPS_LINALG_SWEEPS_H

#include "ir/ops/linalg/matrix.h"

/* Up to two matrices, whose rotations differ but are of the same rows. */
#define SWEEPS_MATRICES 2
struct sweeps {
  struct kb *kb;
  struct matrix turns, bounds; /* cosines (or what stands for them) and sines, real; first rows and numbers of rotations */
  struct matrix rotated[SWEEPS_MATRICES];
  expr_id width[SWEEPS_MATRICES]; /* columns */
  int matrices, places;           /* of them; for how many there is room */
  bool is_acute;                  /* no cosine is below 0: rotations are more exact then */
  uint32_t kept;                  /* local: sweeps that are kept, */
  expr_id most;                   /* up to so many */
};
/* For so many matrices of n rows in each place of a batch, `dims` but for its last two; `dtype`: of the rotations, real. */
void sweeps_create(struct kb *kb, enum dtype dtype, int rank, const dim *dims, dim n, int matrices, struct sweeps *out);
/* Inside the loops over batches. */
void sweeps_begin(struct sweeps *s, const expr_id *batch);
void sweeps_rotate(struct sweeps *s, const struct matrix *m, expr_id width);

/* A sweep of `count` rotations, the first one of row `first`; the rotations themselves may come in any order, all of them. */
void sweep_begin(const struct sweeps *s, expr_id first, expr_id count);
/* Of rotation k: row' = c row + s next, next' = c next - s row. */
void sweep_put(const struct sweeps *s, int matrix, expr_id k, struct element cosine, struct element sine);
void sweep_end(const struct sweeps *s);
/* Rotates what is still to be rotated. */
void sweeps_apply(const struct sweeps *s);
/* Rows i and `other` of all matrices change places; nothing is to be rotated. */
void sweeps_exchange(const struct sweeps *s, expr_id i, expr_id other);

#endif
