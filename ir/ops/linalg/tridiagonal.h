/* tridiagonal.h: A = Q T Q*, A self-adjoint, T tridiagonal and real, by reflections from both sides (Golub, Van Loan: Matrix Computations,
 * 8.3.1). */
#ifndef TFC_IR_OPS_LINALG_TRIDIAGONAL_H
#define TFC_IR_OPS_LINALG_TRIDIAGONAL_H

#include "ir/ops/linalg/householder.h"

/* All matrices but `band` are of A's dtype. */
struct tridiagonal {
  struct matrix a;       /* [n, n], both halves; overwritten */
  struct matrix vectors; /* [n, n]: row k holds the vector of reflection k, from element k on; number 0 is none */
  struct matrix tau;     /* [1, n] */
  struct matrix sums;    /* [2, n] */
  struct matrix band;    /* [2, n], real: the diagonal, and what is below it */
  expr_id n;
};
void tridiagonal_reduce(struct kb *kb, const struct tridiagonal *t);
/* Q's columns, as rows. */
void tridiagonal_collect(struct kb *kb, const struct tridiagonal *t, const struct matrix *q);

#endif
