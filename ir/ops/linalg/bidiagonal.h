/* bidiagonal.h: M = U B V*, B upper bidiagonal and real, by reflections from both sides (Golub, Kahan 1965; Golub, Van Loan: Matrix
 * Computations, 5.4.8), then B's singular values by QR steps. Columns of M and vectors are rows of the buffers, so that whatever is added
 * up or rotated lies side by side. */
#ifndef TFC_IR_OPS_LINALG_BIDIAGONAL_H
#define TFC_IR_OPS_LINALG_BIDIAGONAL_H

#include "ir/ops/linalg/householder.h"
#include "ir/ops/linalg/sweeps.h"

/* M has m rows and n columns, n <= m. The first three matrices are of its dtype. */
struct bidiagonal {
  struct matrix columns; /* [n, m]: M; then row k holds the vector of reflection k from the left, from element k on */
  struct matrix right;   /* [n, n]: the vectors of those from the right; number 0 is none */
  struct matrix tau;     /* [2, n]: of both */
  struct matrix sums;    /* [2, m] */
  struct matrix band;    /* [2, n], double: the diagonal, and what is right of it */
  expr_id m, n;
};
void bidiagonal_reduce(struct kb *kb, const struct bidiagonal *b);
/* The first columns of U, or of V. */
void bidiagonal_left(struct kb *kb, const struct bidiagonal *b, const struct matrix *u, expr_id rows);
void bidiagonal_right(struct kb *kb, const struct bidiagonal *b, const struct matrix *v);

/* The diagonal of `band` becomes the singular values, descending. Matrix 0 of `s` is rotated as the rows of U, matrix 1 as those of V, by
 * acute angles; none where nobody asks for vectors. */
void bidiagonal_diagonalize(struct kb *kb, const struct matrix *band, expr_id n, const struct sweeps *s);

#endif
