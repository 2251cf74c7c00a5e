/* jacobi.h: singular values of a square matrix by rotations from both sides (Kogbetliantz), after a QR factorisation with column exchanges
 * of a matrix that is not square. Order and signs of the rotations are those of Eigen's JacobiSVD, so that singular vectors have its signs.
 * All matrices are of the kernel's own dtype (kb->f.dtype). */
#ifndef TFC_IR_OPS_LINALG_JACOBI_H
#define TFC_IR_OPS_LINALG_JACOBI_H

#include "ir/ops/linalg/householder.h"

/* A P = Q R of `a` (rows >= columns), which is overwritten: Q's first q_columns columns in q, P's in p (columns x columns), R in r, or its
 * adjoint. `tau` is [1, columns]. */
struct pivoted_qr {
  struct matrix a, q, p, r, tau;
  expr_id rows, columns, q_columns;
  bool adjoint;
};
void pivoted_qr(struct kb *kb, const struct pivoted_qr *d);

/* w (n x n) becomes diagonal, with values >= 0 (of complex matrices real); the rotations are collected in the columns of left and right,
 * NULL where nobody asks for them. */
void jacobi_diagonalize(struct kb *kb, const struct matrix *w, const struct matrix *left, expr_id left_rows, const struct matrix *right,
                        expr_id right_rows, expr_id n);

#endif
