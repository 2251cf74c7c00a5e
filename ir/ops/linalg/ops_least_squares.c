/* ops_least_squares.c: MatrixSolveLs: X with the least |A X - B|, and of those the least |X|. Fast: by the normal equations of the smaller
 * kind, A* A X = A* B, or A A* Z = B and X = A* Z, with Cholesky's factorisation, which must succeed. Else by singular values. */
#include <float.h>

#include "ir/ops/linalg/householder.h"
#include "ir/ops/linalg/svd.h"

struct least_squares {
  struct kb *kb;
  struct matrix a, b, g, z, x; /* [rows, columns], [rows, right]; [p, p], [p, right], [columns, right] */
  expr_id rows, columns, right, p;
  expr_id tall; /* a bool: rows >= columns, so that p = columns */
};

/* Element (i, k) of A* when it is tall, of A else: the Gramian is the product of that with its adjoint. */
static struct element half_of_gramian(const struct least_squares *s, expr_id i, expr_id k) {
  struct kb *kb = s->kb;
  struct element e = matrix_get(&s->a, expr_select(kb->k, s->tall, k, i), expr_select(kb->k, s->tall, i, k));
  return f_cast(&kb->f, kb->f.dtype, f_select(&kb->f, real_element(s->tall), f_conj(&kb->f, e), e));
}

static void gramian(const struct least_squares *s, uint32_t regularizer) {
  struct kb *kb = s->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, s->p), j = kb_for(kb, LOOP_SEQ, kb_add(kb, i, kb_int(kb, 1)));
  struct element same = real_element(expr_binary(kb->k, SCALAR_EQ, i, j)), none = f_const(&kb->f, 0);
  struct accumulator sum = acc_begin(kb, f_select(&kb->f, same, e_add(kb, none, kb_load(kb, regularizer, NULL)), none));
  expr_id k = kb_for(kb, LOOP_SEQ, expr_select(kb->k, s->tall, s->rows, s->columns));
  acc_add(kb, &sum, e_mul(kb, half_of_gramian(s, i, k), f_conj(&kb->f, half_of_gramian(s, j, k))));
  kb_close(kb, 1);
  matrix_put(&s->g, i, j, acc_get(kb, &sum));
  kb_close(kb, 2);
}

/* G = L L* in place. */
static void factor(const struct least_squares *s) {
  struct kb *kb = s->kb;
  struct formula *f = &kb->f;
  expr_id j = kb_for(kb, LOOP_SEQ, s->p), one = kb_int(kb, 1);
  struct accumulator square = acc_begin(kb, f_real(matrix_get(&s->g, j, j)));
  expr_id k = kb_for(kb, LOOP_SEQ, j);
  struct element e = matrix_get(&s->g, j, k);
  acc_set(kb, &square, e_sub(kb, acc_get(kb, &square), f_real(e_mul(kb, e, f_conj(f, e)))));
  kb_close(kb, 1);
  expr_id failed = f_binary(f, SCALAR_LE, acc_get(kb, &square), f_const_as(f, DTYPE_DOUBLE, 0)).re;
  kb_check(kb, expr_unary(kb->k, SCALAR_NOT, failed), INVALID_ARGUMENT,
           "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger l2_regularizer > 0.", NO_EXPR,
           NO_EXPR);
  struct element pivot = e_now(kb, f_unary(f, SCALAR_SQRT, acc_get(kb, &square)));
  matrix_put(&s->g, j, j, pivot);
  expr_id below = kb_add(kb, j, one), i = kb_add(kb, below, kb_for(kb, LOOP_SEQ, kb_sub(kb, s->p, below)));
  struct accumulator sum = acc_begin(kb, matrix_get(&s->g, i, j));
  k = kb_for(kb, LOOP_SEQ, j);
  acc_set(kb, &sum, e_sub(kb, acc_get(kb, &sum), e_mul(kb, matrix_get(&s->g, i, k), f_conj(f, matrix_get(&s->g, j, k)))));
  kb_close(kb, 1);
  matrix_put(&s->g, i, j, e_div(kb, acc_get(kb, &sum), pivot));
  kb_close(kb, 2);
}

/* L Y = Z, then L* Z = Y: one column in place. */
static void substitute(const struct least_squares *s, expr_id column, bool adjoint) {
  struct kb *kb = s->kb;
  expr_id one = kb_int(kb, 1), step = kb_for(kb, LOOP_SEQ, s->p), i = adjoint ? kb_sub(kb, kb_sub(kb, s->p, one), step) : step;
  struct accumulator sum = acc_begin(kb, matrix_get(&s->z, i, column));
  expr_id k = kb_for(kb, LOOP_SEQ, step);
  k = adjoint ? kb_add(kb, kb_add(kb, i, one), k) : k;
  struct element e = adjoint ? f_conj(&kb->f, matrix_get(&s->g, k, i)) : matrix_get(&s->g, i, k);
  acc_set(kb, &sum, e_sub(kb, acc_get(kb, &sum), e_mul(kb, e, matrix_get(&s->z, k, column))));
  kb_close(kb, 1);
  matrix_put(&s->z, i, column, e_now(kb, e_div(kb, acc_get(kb, &sum), matrix_get(&s->g, i, i))));
  kb_close(kb, 1);
}

/* (A* y)[i]: the sum over the rows */
static struct element adjoint_product(const struct least_squares *s, const struct matrix *y, expr_id i, expr_id column) {
  struct kb *kb = s->kb;
  struct accumulator sum = acc_begin(kb, f_const(&kb->f, 0));
  expr_id k = kb_for(kb, LOOP_SEQ, s->rows);
  struct element e = f_cast(&kb->f, kb->f.dtype, matrix_get(&s->a, k, i));
  acc_add(kb, &sum, e_mul(kb, f_conj(&kb->f, e), f_cast(&kb->f, kb->f.dtype, matrix_get(y, k, column))));
  kb_close(kb, 1);
  return acc_get(kb, &sum);
}

static void solve_column(const struct least_squares *s, expr_id column) {
  struct kb *kb = s->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, s->p);
  kb_if(kb, s->tall);
  matrix_put(&s->z, i, column, adjoint_product(s, &s->b, i, column));
  kb_else(kb);
  matrix_put(&s->z, i, column, f_cast(&kb->f, kb->f.dtype, matrix_get(&s->b, i, column)));
  kb_close(kb, 2);
  substitute(s, column, false);
  substitute(s, column, true);
  i = kb_for(kb, LOOP_SEQ, s->columns);
  kb_if(kb, s->tall);
  matrix_put(&s->x, i, column, matrix_get(&s->z, i, column));
  kb_else(kb);
  matrix_put(&s->x, i, column, adjoint_product(s, &s->z, i, column));
  kb_close(kb, 2);
}

static status solve_fast(struct op_call *c, const value_id in[3], const dim *dims, value_id *out) {
  struct flow_value a = *op_value(c, in[0]), b = *op_value(c, in[1]);
  enum dtype wide = wide_dtype(a.dtype);
  dim rows = a.dims[a.rank - 2], columns = a.dims[a.rank - 1], p = dim_min(op_dims(c), rows, columns), other[LIMIT_RANK];
  struct kb kb;
  kb_begin(&kb, c, wide);
  uint32_t ab = kb_in(&kb, in[0]), bb = kb_in(&kb, in[1]), l2 = kb_in(&kb, in[2]), x = kb_out(&kb, wide, a.rank, dims);
  memcpy(other, dims, sizeof other);
  other[a.rank - 2] = p;
  uint32_t z = kb_out(&kb, wide, a.rank, other);
  other[a.rank - 1] = p;
  uint32_t g = kb_out(&kb, wide, a.rank, other);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, a.rank - 2, a.dims, at);
  struct least_squares s = {.kb = &kb,
                            .a = matrix_of(&kb, ab, at),
                            .b = matrix_of(&kb, bb, at),
                            .g = matrix_of(&kb, g, at),
                            .z = matrix_of(&kb, z, at),
                            .x = matrix_of(&kb, x, at),
                            .rows = kb_dim(&kb, rows),
                            .columns = kb_dim(&kb, columns),
                            .right = kb_dim(&kb, b.dims[b.rank - 1]),
                            .p = kb_dim(&kb, p)};
  s.tall = expr_binary(kb.k, SCALAR_LE, s.columns, s.rows);
  struct element positive = f_binary(&kb.f, SCALAR_LE, f_const_as(&kb.f, DTYPE_DOUBLE, 0), kb_load(&kb, l2, NULL));
  kb_check(&kb, positive.re, INVALID_ARGUMENT, "l2_regularizer must be >= 0.", NO_EXPR, NO_EXPR);
  kb_if(&kb, kb_lt(&kb, kb_int(&kb, 0), s.right));
  gramian(&s, l2);
  factor(&s);
  solve_column(&s, kb_for(&kb, LOOP_SEQ, s.right));
  kb_close(&kb, 2 + a.rank - 2);
  *out = kb_value(&kb, x);
  return kb_finish(&kb);
}

/* X = V diag(1 / s) U* B, over the values that are more than a rounding error of the largest. */
static status solve_by_values(struct op_call *c, const value_id in[3], const dim *dims, value_id *out) {
  struct flow_value a = *op_value(c, in[0]);
  struct svd_parts parts;
  enum dtype wide = wide_dtype(a.dtype);
  TRY(svd_factor(c, in[0], &(struct svd_wish){.vectors = true, .dtype = wide}, &parts));
  struct kb kb;
  kb_begin(&kb, c, wide);
  uint32_t sb = kb_in(&kb, parts.s), ub = kb_in(&kb, parts.u), vb = kb_in(&kb, parts.v), bb = kb_in(&kb, in[1]), l2 = kb_in(&kb, in[2]);
  uint32_t x = kb_out(&kb, wide, a.rank, dims);
  expr_id at[LIMIT_RANK], zero = kb_int(&kb, 0);
  kb_loops(&kb, LOOP_PAR, a.rank, dims, at);
  struct matrix u = matrix_of(&kb, ub, at), v = matrix_of(&kb, vb, at), b = matrix_of(&kb, bb, at);
  struct element positive = f_binary(&kb.f, SCALAR_LE, f_const_as(&kb.f, DTYPE_DOUBLE, 0), kb_load(&kb, l2, NULL));
  kb_check(&kb, positive.re, INVALID_ARGUMENT, "l2_regularizer must be >= 0.", NO_EXPR, NO_EXPR);
  struct accumulator sum = acc_begin(&kb, f_const(&kb.f, 0));
  expr_id k = kb_for_dim(&kb, LOOP_SEQ, parts.count), here[LIMIT_RANK];
  memcpy(here, at, sizeof here);
  here[a.rank - 2] = k;
  struct element value = e_now(&kb, kb_load(&kb, sb, here));
  here[a.rank - 2] = zero;
  double rounding = dtype_real(a.dtype) == DTYPE_DOUBLE ? DBL_EPSILON : FLT_EPSILON;
  struct element limit = e_mul(&kb, kb_load(&kb, sb, here), f_const_as(&kb.f, DTYPE_DOUBLE, rounding));
  limit = e_mul(&kb, limit, real_element(expr_cast(kb.k, DTYPE_DOUBLE, kb_dim(&kb, parts.count))));
  kb_if(&kb, expr_unary(kb.k, SCALAR_NOT, f_binary(&kb.f, SCALAR_LE, value, limit).re));
  struct accumulator product = acc_begin(&kb, f_const(&kb.f, 0));
  expr_id row = kb_for_dim(&kb, LOOP_SEQ, a.dims[a.rank - 2]);
  struct element e = f_cast(&kb.f, wide, matrix_get(&b, row, at[a.rank - 1]));
  acc_add(&kb, &product, e_mul(&kb, f_conj(&kb.f, f_cast(&kb.f, wide, matrix_get(&u, row, k))), e));
  kb_close(&kb, 1);
  acc_add(&kb, &sum, e_mul(&kb, e_div(&kb, acc_get(&kb, &product), value), f_cast(&kb.f, wide, matrix_get(&v, at[a.rank - 2], k))));
  kb_close(&kb, 2);
  kb_store(&kb, x, at, acc_get(&kb, &sum));
  kb_close(&kb, a.rank);
  *out = kb_value(&kb, x);
  return kb_finish(&kb);
}

/* matrix, rhs, l2_regularizer (which the slow way does not use) */
status build_matrix_solve_ls(struct op_call *c) {
  value_id in[3], wide, out;
  for (uint32_t i = 0; i < 3; i++)
    TRY(op_input(c, i, &in[i]));
  struct flow_value a = *op_value(c, in[0]), b = *op_value(c, in[1]), l2 = *op_value(c, in[2]);
  if (a.rank < 2 || a.rank != b.rank)
    return fail(INVALID_ARGUMENT, "All input tensors must have the same rank, at least 2: %s and %s", op_shape_text(c, a.rank, a.dims),
                op_shape_text(c, b.rank, b.dims));
  if (l2.rank != 0)
    return fail(INVALID_ARGUMENT, "l2_regularizer must be scalar, got shape %s", op_shape_text(c, l2.rank, l2.dims));
  for (int i = 0; i < a.rank - 2; i++)
    TRY(op_equal_dims(c, a.dims[i], b.dims[i], "All input tensors must have the same outer dimensions"));
  TRY(op_equal_dims(c, a.dims[a.rank - 2], b.dims[b.rank - 2], "Input matrix and rhs are incompatible"));
  dim dims[LIMIT_RANK];
  memcpy(dims, b.dims, sizeof dims);
  dims[a.rank - 2] = a.dims[a.rank - 1];
  TRY(node_attr_int(c->node, "fast", 1) ? solve_fast(c, in, dims, &wide) : solve_by_values(c, in, dims, &wide));
  TRY(op_cast(c, wide, a.dtype, &out));
  op_set_output(c, 0, out);
  return OK;
}
