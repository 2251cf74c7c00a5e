/* schur.h: A = U T U*, U unitary, T upper triangular: Hessenberg's form by reflections, then QR steps with single shifts. All buffers
 * are of the kernel's own complex dtype, [..., n, n]. */
#ifndef TFC_IR_OPS_LINALG_SCHUR_H
#define TFC_IR_OPS_LINALG_SCHUR_H

#include "ir/ops/linalg/householder.h"

/* The first half: t becomes zero below its first subdiagonal, u the reflections' product. Any dtype. */
void schur_hessenberg(struct kb *kb, const struct matrix *t, const struct matrix *u, expr_id n);
/* `t` holds A, and T afterwards; gives whether it succeeded (a bool; of elements that are not finite it does not). */
expr_id schur_factor(struct kb *kb, const struct matrix *t, const struct matrix *u, expr_id n);
/* T and U, complex, of a real form (real_schur.h): of each pair the eigenvalue with the positive imaginary part comes first. */
void schur_of_real(struct kb *kb, const struct matrix *real_t, const struct matrix *real_u, const struct matrix *t, const struct matrix *u,
                   expr_id n);
/* out = U X U*, X upper triangular; `work` is overwritten; cast to the dtype of out (real: the real part). */
void schur_restore(struct kb *kb, const struct matrix *u, const struct matrix *x, const struct matrix *work, const struct matrix *out,
                   expr_id n);

#endif
