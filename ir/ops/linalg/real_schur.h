/* real_schur.h: A = U T U', all real: T has blocks of 1 x 1 and 2 x 2 on its diagonal, those of pairs of complex eigenvalues. Francis' QR
 * steps with double shifts, as Eigen takes them: the order of the eigenvalues and the signs of U's columns are its. How far U's two
 * columns of a pair are turned in their plane is a matter of rounding: up to four rows sums round as Eigen's do, above that it adds in
 * vectors, and the phase of a pair's vectors may be another. */
#ifndef TFC_IR_OPS_LINALG_REAL_SCHUR_H
#define TFC_IR_OPS_LINALG_REAL_SCHUR_H

#include "ir/ops/linalg/schur.h"

/* `t` holds A, and T afterwards; all buffers and the kernel's constants are of one real dtype. Gives whether it succeeded (a bool). */
expr_id real_schur_factor(struct kb *kb, const struct matrix *t, const struct matrix *u, expr_id n);

#endif
