/* ops_triangular.c: triangular matrices: Cholesky's factorisation, and solving by substitution. */
#include <math.h>

#include "ir/ops/matrix.h"

/* Column by column from the lower triangle. A matrix that is not positive definite gives NaN, with zeros above. */
status build_cholesky(struct op_call *c) {
  value_id v;
  struct flow_value x;
  TRY(op_input(c, 0, &v));
  TRY(matrix_square(c, v, &x));
  dim n = x.dims[x.rank - 1];
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  struct formula *f = &kb.f;
  enum dtype real = dtype_real(x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], one = kb_int(&kb, 1), zero = expr_float(kb.k, real, 0);
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix from = matrix_of(&kb, a, at), to = matrix_of(&kb, o, at);
  uint32_t good = kb_local(&kb, expr_int(kb.k, DTYPE_BOOL, 1));
  expr_id j = kb_for_dim(&kb, LOOP_SEQ, n);
  struct accumulator square = acc_begin(&kb, f_real(matrix_get(&from, j, j)));
  expr_id k = kb_for(&kb, LOOP_SEQ, j);
  struct element e = matrix_get(&to, j, k);
  acc_set(&kb, &square, e_sub(&kb, acc_get(&kb, &square), f_real(e_mul(&kb, e, f_conj(f, e)))));
  kb_close(&kb, 1);
  kb_set(&kb, good, kb_and(&kb, kb_get(&kb, good), kb_lt(&kb, zero, acc_get(&kb, &square).re)));
  struct element pivot = e_now(&kb, f_unary(f, SCALAR_SQRT, acc_get(&kb, &square)));
  matrix_put(&to, j, j, f_cast(f, x.dtype, pivot));
  expr_id i = kb_add(&kb, kb_add(&kb, j, one), kb_for(&kb, LOOP_SEQ, kb_sub(&kb, kb_sub(&kb, kb_dim(&kb, n), j), one)));
  struct accumulator sum = acc_begin(&kb, matrix_get(&from, i, j));
  k = kb_for(&kb, LOOP_SEQ, j);
  acc_set(&kb, &sum, e_sub(&kb, acc_get(&kb, &sum), e_mul(&kb, matrix_get(&to, i, k), f_conj(f, matrix_get(&to, j, k)))));
  kb_close(&kb, 1);
  matrix_put(&to, i, j, e_div(&kb, acc_get(&kb, &sum), f_cast(f, x.dtype, pivot)));
  matrix_put(&to, j, i, f_const(f, 0));
  kb_close(&kb, 2);
  kb_if(&kb, expr_unary(kb.k, SCALAR_NOT, kb_get(&kb, good)));
  i = kb_for_dim(&kb, LOOP_SEQ, n);
  k = kb_for(&kb, LOOP_SEQ, kb_add(&kb, i, one));
  matrix_put(&to, i, k, f_const(f, NAN));
  kb_close(&kb, 3 + x.rank - 2);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* The loops' variables as seen by an operand whose batch axes may be 1. */
static void broadcast_batch(struct kb *kb, uint32_t buffer, int batch, const expr_id *loops, expr_id *at) {
  const struct kernel_buffer b = kb->k->buffers.items[buffer];
  for (int i = 0; i < b.rank - 2; i++)
    at[i] = b.dims[i] == 1 ? kb_int(kb, 0) : loops[batch - (b.rank - 2) + i];
}

/* matrix, rhs; lower, adjoint: the adjoint of a lower matrix is solved from the last row. */
status build_matrix_triangular_solve(struct op_call *c) {
  value_id v, right;
  struct flow_value m;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &right));
  TRY(matrix_square(c, v, &m));
  struct flow_value b = *op_value(c, right);
  if (b.rank < 2)
    return fail(INVALID_ARGUMENT, "Input tensor b must have rank >= 2, got %d", b.rank);
  TRY(op_equal_dims(c, m.dims[m.rank - 1], b.dims[b.rank - 2], "Input matrix and rhs are incompatible"));
  bool adjoint = node_attr_int(c->node, "adjoint", 0), lower = node_attr_int(c->node, "lower", 1);
  bool backward = lower == adjoint;
  int batch;
  dim dims[LIMIT_RANK];
  value_id p = flow_add_value(c->lw->flow, m.dtype, m.rank - 2, m.dims), q = flow_add_value(c->lw->flow, m.dtype, b.rank - 2, b.dims);
  TRY(op_broadcast(c, p, q, &batch, dims));
  dims[batch] = b.dims[b.rank - 2];
  dims[batch + 1] = b.dims[b.rank - 1];
  struct kb kb;
  kb_begin(&kb, c, m.dtype);
  uint32_t a = kb_in(&kb, v), r = kb_in(&kb, right), o = kb_out(&kb, m.dtype, batch + 2, dims);
  expr_id at[LIMIT_RANK], am[LIMIT_RANK], ar[LIMIT_RANK], one = kb_int(&kb, 1), n = kb_dim(&kb, dims[batch]);
  kb_loops(&kb, LOOP_PAR, batch, dims, at);
  expr_id column = kb_for_dim(&kb, LOOP_PAR, dims[batch + 1]);
  broadcast_batch(&kb, a, batch, at, am);
  broadcast_batch(&kb, r, batch, at, ar);
  struct matrix mm = matrix_of(&kb, a, am), from = matrix_of(&kb, r, ar), x = matrix_of(&kb, o, at);
  expr_id step = kb_for(&kb, LOOP_SEQ, n), i = backward ? kb_sub(&kb, kb_sub(&kb, n, one), step) : step;
  struct accumulator acc = acc_begin(&kb, matrix_get(&from, i, column));
  expr_id j = kb_for(&kb, LOOP_SEQ, step);
  j = backward ? kb_add(&kb, kb_add(&kb, i, one), j) : j;
  struct element e = adjoint ? f_conj(&kb.f, matrix_get(&mm, j, i)) : matrix_get(&mm, i, j);
  acc_set(&kb, &acc, e_sub(&kb, acc_get(&kb, &acc), e_mul(&kb, e, matrix_get(&x, j, column))));
  kb_close(&kb, 1);
  struct element pivot = adjoint ? f_conj(&kb.f, matrix_get(&mm, i, i)) : matrix_get(&mm, i, i);
  matrix_put(&x, i, column, e_div(&kb, acc_get(&kb, &acc), pivot));
  kb_close(&kb, batch + 2);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
