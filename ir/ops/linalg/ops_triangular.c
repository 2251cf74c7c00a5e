/* ops_triangular.c: triangular matrices: Cholesky's factorisation and its gradient, and solving by substitution. */
#include <math.h>

#include "ir/ops/linalg/matrix.h"

/* ---- A = U* U row by row, U in the upper triangle: a row's sums stay in registers; L = U* then goes into the lower one ---- */

/* The upper triangle, from the lower one: one by one, as lanes lie apart on one side. */
static void take_upper(struct kb *kb, const struct matrix *from, const struct matrix *to, dim n) {
  expr_id i = kb_for_dim(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, kb_add(kb, i, kb_int(kb, 1)));
  matrix_put(to, j, i, f_conj(&kb->f, matrix_get(from, i, j)));
  kb_close(kb, 2);
}
/* What is left of row i without the rows above. */
static void take_products(struct kb *kb, const struct matrix *to, dim n, expr_id i) {
  struct formula *f = &kb->f;
  enum dtype dtype = kb->k->buffers.items[to->buffer].dtype, sum_in = sum_dtype(dtype);
  expr_id j = kb_add(kb, i, kb_for(kb, LOOP_PAR, kb_sub(kb, kb_dim(kb, n), i)));
  struct accumulator sum = acc_zero(kb, sum_in);
  expr_id k = kb_for(kb, LOOP_SEQ, i);
  struct element product = e_mul(kb, f_conj(f, f_cast(f, sum_in, matrix_get(to, k, i))), f_cast(f, sum_in, matrix_get(to, k, j)));
  acc_add(kb, &sum, product);
  kb_close(kb, 1);
  struct element e = e_sub(kb, f_cast(f, sum_in, matrix_get(to, i, j)), acc_get(kb, &sum));
  matrix_put(to, i, j, e_now(kb, f_cast(f, dtype, e)));
  kb_close(kb, 1);
}
/* Divides row i by its diagonal element's root. Returns whether that element is above 0, or NaN. */
static expr_id factor_row(struct kb *kb, const struct matrix *to, dim n, expr_id i) {
  struct formula *f = &kb->f;
  enum dtype dtype = kb->k->buffers.items[to->buffer].dtype;
  expr_id next = kb_add(kb, i, kb_int(kb, 1)), zero = expr_float(kb->k, dtype_real(dtype), 0);
  struct element square = e_now(kb, f_real(matrix_get(to, i, i)));
  expr_id good = kb_get(kb, kb_local(kb, expr_unary(kb->k, SCALAR_NOT, expr_binary(kb->k, SCALAR_LE, square.re, zero))));
  struct element pivot = e_now(kb, f_unary(f, SCALAR_SQRT, square));
  matrix_put(to, i, i, f_cast(f, dtype, pivot));
  expr_id j = kb_add(kb, next, kb_for(kb, LOOP_PAR, kb_sub(kb, kb_dim(kb, n), next)));
  matrix_put(to, i, j, e_now(kb, e_div(kb, matrix_get(to, i, j), pivot)));
  kb_close(kb, 1);
  return good;
}
/* The lower triangle, and zeros above; NaN instead of it of a matrix that is not `good`. */
static void put_lower(struct kb *kb, const struct matrix *to, dim n, expr_id good) {
  struct formula *f = &kb->f;
  enum dtype dtype = kb->k->buffers.items[to->buffer].dtype;
  expr_id i = kb_for_dim(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, kb_add(kb, i, kb_int(kb, 1)));
  struct element e = f_conj(f, matrix_get(to, j, i));
  matrix_put(to, i, j, f_select(f, real_element(good), e, f_const_as(f, dtype, NAN)));
  kb_close(kb, 2);
  i = kb_for_dim(kb, LOOP_SEQ, n);
  expr_id next = kb_add(kb, i, kb_int(kb, 1));
  j = kb_add(kb, next, kb_for(kb, LOOP_PAR, kb_sub(kb, kb_dim(kb, n), next)));
  matrix_put(to, i, j, f_const_as(f, dtype, 0));
  kb_close(kb, 2);
}
/* Only the lower triangle is read. A matrix that is not positive definite gives NaN, with zeros above; NaN in the matrix only gets as far
 * as the elements that come from it. */
status build_cholesky(struct op_call *c) {
  value_id v;
  struct flow_value x;
  TRY(op_input(c, 0, &v));
  TRY(matrix_square(c, v, &x));
  dim n = x.dims[x.rank - 1];
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix from = matrix_of(&kb, a, at), to = matrix_of(&kb, o, at);
  uint32_t good = kb_local(&kb, expr_int(kb.k, DTYPE_BOOL, 1));
  take_upper(&kb, &from, &to, n);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, n);
  take_products(&kb, &to, n, i);
  kb_set(&kb, good, kb_and(&kb, kb_get(&kb, good), factor_row(&kb, &to, n, i)));
  kb_close(&kb, 1);
  put_lower(&kb, &to, n, kb_get(&kb, good));
  kb_close(&kb, x.rank - 2);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- its gradient, from the factor L and the gradient of L (only their lower triangles) ----
 *
 * With P the lower triangle of L' G, its diagonal halved: S = L^-T P L^-1, and the result is (S + S') / 2. */

/* P in the lower triangle of `s`, 0 above. */
static void gradient_product(struct kb *kb, const struct matrix *l, const struct matrix *g, const struct matrix *s, dim n) {
  struct formula *f = &kb->f;
  expr_id count = kb_dim(kb, n), i = kb_for(kb, LOOP_SEQ, count), j = kb_for(kb, LOOP_SEQ, count);
  struct accumulator sum = acc_begin(kb, f_const(f, 0));
  kb_if(kb, expr_binary(kb->k, SCALAR_LE, j, i));
  expr_id k = kb_add(kb, i, kb_for(kb, LOOP_SEQ, kb_sub(kb, count, i)));
  acc_add(kb, &sum, f_cast(f, f->dtype, e_mul(kb, matrix_get(l, k, i), matrix_get(g, k, j))));
  kb_close(kb, 2);
  struct element e = acc_get(kb, &sum), half = e_mul(kb, e, f_const(f, 0.5));
  matrix_put(s, i, j, f_select(f, real_element(expr_binary(kb->k, SCALAR_EQ, i, j)), half, e));
  kb_close(kb, 2);
}

/* L' X = S from the last row, for each column; or X L = S from the last column, for each row: in place. */
static void gradient_solve(struct kb *kb, const struct matrix *l, const struct matrix *s, dim n, bool right) {
  expr_id count = kb_dim(kb, n), one = kb_int(kb, 1), other = kb_for(kb, LOOP_SEQ, count), step = kb_for(kb, LOOP_SEQ, count);
  expr_id i = kb_sub(kb, kb_sub(kb, count, one), step);
  struct accumulator acc = acc_begin(kb, right ? matrix_get(s, other, i) : matrix_get(s, i, other));
  expr_id j = kb_add(kb, kb_add(kb, i, one), kb_for(kb, LOOP_SEQ, step));
  struct element x = right ? matrix_get(s, other, j) : matrix_get(s, j, other);
  acc_set(kb, &acc, e_sub(kb, acc_get(kb, &acc), e_mul(kb, f_cast(&kb->f, kb->f.dtype, matrix_get(l, j, i)), x)));
  kb_close(kb, 1);
  struct element e = e_now(kb, e_div(kb, acc_get(kb, &acc), f_cast(&kb->f, kb->f.dtype, matrix_get(l, i, i))));
  matrix_put(s, right ? other : i, right ? i : other, e);
  kb_close(kb, 2);
}

status build_cholesky_grad(struct op_call *c) {
  value_id v, vg;
  struct flow_value x;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &vg));
  TRY(matrix_square(c, v, &x));
  TRY(op_same_shape(c, v, vg, "Inputs (L and grad) must have the same shape"));
  dim n = x.dims[x.rank - 1];
  enum dtype d = sum_dtype(x.dtype);
  struct kb kb;
  kb_begin(&kb, c, d);
  uint32_t a = kb_in(&kb, v), b = kb_in(&kb, vg), work = kb_out(&kb, d, x.rank, x.dims), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix l = matrix_of(&kb, a, at), g = matrix_of(&kb, b, at), s = matrix_of(&kb, work, at), out = matrix_of(&kb, o, at);
  gradient_product(&kb, &l, &g, &s, n);
  gradient_solve(&kb, &l, &s, n, false);
  gradient_solve(&kb, &l, &s, n, true);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, n), j = kb_for_dim(&kb, LOOP_SEQ, n);
  struct element sum = e_add(&kb, matrix_get(&s, i, j), matrix_get(&s, j, i));
  matrix_put(&out, i, j, f_cast(&kb.f, x.dtype, e_mul(&kb, sum, f_const(&kb.f, 0.5))));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* The loops' variables as seen by an operand whose batch axes may be 1. */
static void broadcast_batch(struct kb *kb, uint32_t buffer, int batch, const expr_id *loops, expr_id *at) {
  const struct kernel_buffer b = kb->k->buffers.items[buffer];
  for (int i = 0; i < b.rank - 2; i++)
    at[i] = kb_broadcast_index(kb, buffer, i, batch + 2, loops);
}

/* A triangular matrix as it is stored: whole, or (bands above 0) only its bands, one in each row of the buffer. In column i of a row are
 * what is left of the diagonal in row i of a lower matrix, or right of it in row i of an upper one. The diagonal is the first row of a
 * lower matrix and the last of an upper one. */
struct triangle {
  struct matrix m;
  expr_id bands; /* their number; NO_EXPR: stored whole */
  bool lower, adjoint;
};

/* Element (i, j) of the matrix, or of its adjoint. */
static struct element triangle_get(struct kb *kb, const struct triangle *t, expr_id i, expr_id j) {
  expr_id row = t->adjoint ? j : i, column = t->adjoint ? i : j;
  if (t->bands != NO_EXPR) {
    expr_id below = kb_sub(kb, row, column), last = kb_sub(kb, t->bands, kb_int(kb, 1));
    column = row;
    row = t->lower ? below : kb_add(kb, last, below);
  }
  struct element e = matrix_get(&t->m, row, column);
  return t->adjoint ? f_conj(&kb->f, e) : e;
}

/* One column of the right side: from the first row of a lower matrix, from the last of an upper one or of a lower one's adjoint. */
static void triangle_solve(struct kb *kb, const struct triangle *t, const struct matrix *from, const struct matrix *x, expr_id n,
                           expr_id column) {
  bool backward = t->lower == t->adjoint;
  expr_id one = kb_int(kb, 1), step = kb_for(kb, LOOP_SEQ, n), i = backward ? kb_sub(kb, kb_sub(kb, n, one), step) : step;
  struct accumulator acc = acc_begin(kb, matrix_get(from, i, column));
  expr_id reach = t->bands == NO_EXPR ? step : expr_binary(kb->k, SCALAR_MIN, step, kb_sub(kb, t->bands, one));
  expr_id near = kb_add(kb, kb_for(kb, LOOP_SEQ, reach), one), j = backward ? kb_add(kb, i, near) : kb_sub(kb, i, near);
  acc_set(kb, &acc, e_sub(kb, acc_get(kb, &acc), e_mul(kb, triangle_get(kb, t, i, j), matrix_get(x, j, column))));
  kb_close(kb, 1);
  matrix_put(x, i, column, e_div(kb, acc_get(kb, &acc), triangle_get(kb, t, i, i)));
  kb_close(kb, 1);
}

/* No element of the diagonal may be 0. */
static void check_diagonal(struct kb *kb, const struct triangle *t, expr_id n) {
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  struct element zero = f_const_as(&kb->f, kb->k->buffers.items[t->m.buffer].dtype, 0);
  kb_check(kb, f_binary(&kb->f, SCALAR_NE, triangle_get(kb, t, i, i), zero).re, INVALID_ARGUMENT, "Input matrix is not invertible.",
           NO_EXPR, NO_EXPR);
  kb_close(kb, 1);
}

/* matrix, rhs, their batch axes broadcast. */
static status solve_triangles(struct op_call *c, value_id v, value_id right, bool banded) {
  struct flow_value m = *op_value(c, v), b = *op_value(c, right);
  int batch;
  dim dims[LIMIT_RANK];
  value_id p = flow_add_value(op_flow(c), m.dtype, m.rank - 2, m.dims), q = flow_add_value(op_flow(c), m.dtype, b.rank - 2, b.dims);
  TRY(op_broadcast(c, p, q, &batch, dims));
  dims[batch] = b.dims[b.rank - 2];
  dims[batch + 1] = b.dims[b.rank - 1];
  struct kb kb;
  kb_begin(&kb, c, m.dtype);
  uint32_t a = kb_in(&kb, v), r = kb_in(&kb, right), o = kb_out(&kb, m.dtype, batch + 2, dims);
  expr_id at[LIMIT_RANK], am[LIMIT_RANK], ar[LIMIT_RANK], n = kb_dim(&kb, dims[batch]);
  kb_loops(&kb, LOOP_PAR, batch, dims, at);
  kb_loops_over(&kb, batch + 2, dims);
  expr_id column = kb_for_dim(&kb, LOOP_PAR, dims[batch + 1]);
  broadcast_batch(&kb, a, batch, at, am);
  broadcast_batch(&kb, r, batch, at, ar);
  struct triangle t = {.m = matrix_of(&kb, a, am),
                       .bands = banded ? kb_dim(&kb, m.dims[m.rank - 2]) : NO_EXPR,
                       .lower = node_attr_int(c->node, "lower", 1),
                       .adjoint = node_attr_int(c->node, "adjoint", 0)};
  struct matrix from = matrix_of(&kb, r, ar), x = matrix_of(&kb, o, at);
  if (banded)
    check_diagonal(&kb, &t, n);
  triangle_solve(&kb, &t, &from, &x, n, column);
  kb_close(&kb, batch + 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

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
  return solve_triangles(c, v, right, false);
}

/* The matrix as [..., bands, n] */
status build_banded_triangular_solve(struct op_call *c) {
  value_id in[2];
  for (uint32_t i = 0; i < 2; i++) {
    TRY(op_input(c, i, &in[i]));
    struct flow_value x = *op_value(c, in[i]);
    if (x.rank < 2)
      return fail(INVALID_ARGUMENT, "In[%u] ndims must be >= 2: %d", i, x.rank);
    if (op_dim_value(c, op_count(c, x.rank, x.dims)) == 0)
      return fail(INVALID_ARGUMENT, "In[%u] must not be an empty tensor: %s", i, op_shape_text(c, x.rank, x.dims));
  }
  struct flow_value m = *op_value(c, in[0]), b = *op_value(c, in[1]);
  TRY(op_equal_dims(c, m.dims[m.rank - 1], b.dims[b.rank - 2], "In[0] mismatch In[1] shape"));
  return solve_triangles(c, in[0], in[1], true);
}
