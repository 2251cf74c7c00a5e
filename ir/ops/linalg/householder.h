/* householder.h: reflections I - tau v v*, v = (1, tail), that turn a vector into a multiple of the first axis; the tail is kept in the
 * place of the elements that became 0. The signs are those of Eigen and LAPACK: the multiple has the sign opposite to the real part
 * of the vector's first element. Products are rounded before they are added, in Eigen's order: which eigenvalue comes first may hang on
 * that. All matrices are of one dtype, float or double, real or complex. */
#ifndef TFC_IR_OPS_LINALG_HOUSEHOLDER_H
#define TFC_IR_OPS_LINALG_HOUSEHOLDER_H

#include "ir/ops/linalg/matrix.h"

/* Double, or complex128 for complex dtypes: what factorisations compute in. */
static inline enum dtype wide_dtype(enum dtype dtype) { return dtype_is_complex(dtype) ? DTYPE_COMPLEX128 : DTYPE_DOUBLE; }

/* Part `start` .. count - 1 of a column whose first element is 1 and not stored. */
struct reflection {
  const struct matrix *m;
  expr_id column, start, count;
  struct element tau;
};
/* Reflects the column's part in place: its first element becomes the multiple, the rest the tail. */
struct reflection reflect_column(struct kb *kb, const struct matrix *m, expr_id column, expr_id start, expr_id count);
/* Column j of `target` (rows start .. count - 1), reflected. */
void reflect_left(struct kb *kb, const struct reflection *r, const struct matrix *target, expr_id j);
/* Row i of `target` (columns start .. count - 1), reflected from the right. */
void reflect_right(struct kb *kb, const struct reflection *r, const struct matrix *target, expr_id i);

/* The same along a row, whose elements lie side by side: its part start .. count - 1 becomes (1, tail) whole. tau, the multiple (real), and
 * what the tail was divided by (1 where nothing is reflected: tau is 0 then). is_scaled: the matrix was, so that its largest element is
 * about 1. */
struct row_reflection {
  struct element tau, multiple, divisor;
};
struct row_reflection reflect_row(struct kb *kb, const struct matrix *m, expr_id row, expr_id start, expr_id count, bool is_scaled);

/* Row k of `vectors` holds, from element k on, that of reflection k; tau is element k of a row of `tau`. */
struct reflections {
  const struct matrix *vectors, *tau;
  expr_id tau_row, count, length;
};
/* The first columns of the adjoint reflections' product, as the rows of q, or as its columns. */
void collect_reflections(struct kb *kb, const struct reflections *r, const struct matrix *q, expr_id rows);
void collect_columns(struct kb *kb, const struct reflections *r, const struct matrix *q, expr_id columns);

#endif
