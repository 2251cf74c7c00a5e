/* matrix.h: the innermost two axes of a buffer as a matrix, inside loops over the others: what linear algebra's kernels
 * are written in. */
#ifndef TFC_IR_OPS_LINALG_MATRIX_H
#define TFC_IR_OPS_LINALG_MATRIX_H

#include <string.h>

#include "ir/ops/accumulate.h"

struct matrix {
  struct kb *kb;
  uint32_t buffer;
  const expr_id *batch; /* the loops around */
  int batch_rank;
};

static inline struct matrix matrix_of(struct kb *kb, uint32_t buffer, const expr_id *batch) {
  return (struct matrix){kb, buffer, batch, kb->k->buffers.items[buffer].rank - 2};
}
static inline void matrix_index(const struct matrix *m, expr_id row, expr_id column, expr_id *at) {
  memcpy(at, m->batch, sizeof *at * (size_t)m->batch_rank);
  at[m->batch_rank] = row;
  at[m->batch_rank + 1] = column;
}
static inline struct element matrix_get(const struct matrix *m, expr_id row, expr_id column) {
  expr_id at[LIMIT_RANK];
  matrix_index(m, row, column, at);
  return kb_load(m->kb, m->buffer, at);
}
/* A real element goes into a complex matrix too. */
static inline void matrix_put(const struct matrix *m, expr_id row, expr_id column, struct element e) {
  expr_id at[LIMIT_RANK];
  enum dtype dtype = m->kb->k->buffers.items[m->buffer].dtype;
  if (dtype_is_complex(dtype))
    e = f_cast(&m->kb->f, dtype, e);
  matrix_index(m, row, column, at);
  kb_store(m->kb, m->buffer, at, e);
}
/* An element loaded here and now, to be used after others are stored. */
static inline struct element matrix_take(const struct matrix *m, expr_id row, expr_id column) {
  struct accumulator a = acc_begin(m->kb, matrix_get(m, row, column));
  return acc_get(m->kb, &a);
}

/* Ones on the diagonal, zeros elsewhere. */
static inline void matrix_set_identity(const struct matrix *m, expr_id rows, expr_id columns) {
  enum dtype dtype = dtype_real(m->kb->k->buffers.items[m->buffer].dtype);
  expr_id i = kb_for(m->kb, LOOP_SEQ, rows), j = kb_for(m->kb, LOOP_SEQ, columns);
  struct element same = real_element(expr_binary(m->kb->k, SCALAR_EQ, i, j));
  matrix_put(m, i, j, f_select(&m->kb->f, same, f_const_as(&m->kb->f, dtype, 1), f_const_as(&m->kb->f, dtype, 0)));
  kb_close(m->kb, 2);
}
static inline void matrix_exchange_columns(const struct matrix *m, expr_id rows, expr_id i, expr_id j) {
  expr_id k = kb_for(m->kb, LOOP_SEQ, rows);
  struct element a = matrix_take(m, k, i), b = matrix_take(m, k, j);
  matrix_put(m, k, i, b);
  matrix_put(m, k, j, a);
  kb_close(m->kb, 1);
}
/* Opens a loop over from .. end - 1. */
static inline expr_id loop_from(struct kb *kb, enum loop_kind kind, expr_id from, expr_id end) {
  return kb_add(kb, from, kb_for(kb, kind, kb_sub(kb, end, from)));
}

/* What a row of n elements takes in a matrix of the kernel's own: an odd multiple of 8, so that a column's elements do not meet in a few
 * sets of the caches; of matrices that are known to be small, which may be many, no more than it has. */
static inline dim matrix_row(struct op_call *c, dim n) {
  struct dim_table *t = op_dims(c);
  int64_t size = op_dim_value(c, n);
  dim pairs = dim_floordiv(t, dim_add(t, n, op_dim(c, 7)), op_dim(c, 16));
  return size >= 0 && size < 8 ? n : dim_add(t, dim_mul(t, pairs, op_dim(c, 16)), op_dim(c, 8));
}

static inline struct element e_sub(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_SUB, a, b); }
static inline struct element e_add(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_ADD, a, b); }
static inline struct element e_mul(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_MUL, a, b); }
static inline struct element e_div(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_DIV, a, b); }
static inline expr_id e_lt(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_LT, a, b).re; }
static inline struct element e_now(struct kb *kb, struct element e) {
  struct accumulator a = acc_begin(kb, e);
  return acc_get(kb, &a);
}

/* A value as square matrices: INVALID_ARGUMENT otherwise. */
static inline status matrix_square(struct op_call *c, value_id v, struct flow_value *out) {
  *out = *op_value(c, v);
  if (out->rank < 2)
    return fail(INVALID_ARGUMENT, "Input tensor must have rank >= 2, got %d", out->rank);
  if (dim_equal(op_dims(c), out->dims[out->rank - 2], out->dims[out->rank - 1]) == 0)
    return fail(INVALID_ARGUMENT, "Input matrix must be square: %s", op_shape_text(c, out->rank, out->dims));
  return op_equal_dims(c, out->dims[out->rank - 2], out->dims[out->rank - 1], "Input matrix must be square");
}

#endif
