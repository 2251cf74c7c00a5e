/* ops_lu.c: what is done with a factorisation A = P L U: the factors, inverse, determinants, solving. Gaussian elimination with row
 * exchanges, in place in a copy; row k was exchanged with row order[k]. */
#include "ir/ops/linalg/matrix.h"

struct factors {
  int rank;
  dim dims[LIMIT_RANK], n;
  enum dtype dtype;
  value_id lu, order;
};

/* ---- factorisation ---- */

/* Row exchange at step k; the pivot's row number is in `from`. */
static void exchange_rows(struct kb *kb, const struct matrix *m, dim n, expr_id k, expr_id from) {
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, k, from));
  expr_id j = kb_for_dim(kb, LOOP_PAR, n);
  struct element a = matrix_take(m, k, j), b = matrix_take(m, from, j);
  matrix_put(m, k, j, b);
  matrix_put(m, from, j, a);
  kb_close(kb, 2);
}

static expr_id find_pivot(struct kb *kb, const struct matrix *m, dim n, expr_id k) {
  struct formula *f = &kb->f;
  uint32_t best = kb_local(kb, f_norm(f, matrix_get(m, k, k)).re), where = kb_local(kb, k); /* NaN stays where it is */
  expr_id next = kb_add(kb, k, kb_int(kb, 1)), i = kb_add(kb, next, kb_for(kb, LOOP_SEQ, kb_sub(kb, kb_dim(kb, n), next)));
  expr_id size = kb_get(kb, kb_local(kb, f_norm(f, matrix_get(m, i, k)).re));
  expr_id larger = kb_lt(kb, kb_get(kb, best), size);
  kb_set(kb, where, expr_select(kb->k, larger, i, kb_get(kb, where)));
  kb_set(kb, best, expr_select(kb->k, larger, size, kb_get(kb, best)));
  kb_close(kb, 1);
  return kb_get(kb, where);
}

/* Subtracts multiples of row k from those below; the multiples stay where the zeros would be. */
static void eliminate(struct kb *kb, const struct matrix *m, dim n, expr_id k) {
  expr_id one = kb_int(kb, 1), next = kb_add(kb, k, one), left = kb_sub(kb, kb_dim(kb, n), next);
  struct element pivot = matrix_take(m, k, k), zero = f_const(&kb->f, 0);
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, pivot, zero).re);
  expr_id i = kb_add(kb, next, kb_for(kb, LOOP_SEQ, left));
  struct element factor = e_now(kb, e_div(kb, matrix_get(m, i, k), pivot));
  matrix_put(m, i, k, factor);
  expr_id j = kb_add(kb, next, kb_for(kb, LOOP_PAR, left));
  matrix_put(m, i, j, e_now(kb, e_sub(kb, matrix_get(m, i, j), e_mul(kb, factor, matrix_get(m, k, j)))));
  kb_close(kb, 3);
}

static status factor(struct op_call *c, value_id v, bool adjoint, struct factors *out) {
  struct flow_value x;
  TRY(matrix_square(c, v, &x));
  out->rank = x.rank;
  memcpy(out->dims, x.dims, sizeof out->dims);
  out->n = x.dims[x.rank - 1];
  out->dtype = x.dtype;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), lu = kb_out(&kb, x.dtype, x.rank, x.dims), order = kb_out(&kb, DTYPE_INT64, x.rank - 1, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix from = matrix_of(&kb, a, at), m = matrix_of(&kb, lu, at);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, out->n), j = kb_for_dim(&kb, LOOP_SEQ, out->n);
  matrix_put(&m, i, j, adjoint ? f_conj(&kb.f, matrix_get(&from, j, i)) : matrix_get(&from, i, j));
  kb_close(&kb, 2);
  expr_id k = kb_for_dim(&kb, LOOP_SEQ, out->n), pivot = find_pivot(&kb, &m, out->n, k);
  at[x.rank - 2] = k;
  kb_store(&kb, order, at, real_element(pivot));
  exchange_rows(&kb, &m, out->n, k, pivot);
  eliminate(&kb, &m, out->n, k);
  kb_close(&kb, x.rank - 1);
  out->lu = kb_value(&kb, lu);
  out->order = kb_value(&kb, order);
  return kb_finish(&kb);
}

/* The factors themselves, and the rows' order after the exchanges. */
status build_lu(struct op_call *c) {
  value_id v;
  struct factors fs;
  TRY(op_input(c, 0, &v));
  TRY(factor(c, v, false, &fs));
  op_set_output(c, 0, fs.lu);
  struct kb kb;
  kb_begin(&kb, c, fs.dtype);
  enum dtype index = op_output_dtype(c, 1);
  uint32_t a = kb_in(&kb, fs.lu), order = kb_in(&kb, fs.order), o = kb_out(&kb, index, fs.rank - 1, fs.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, fs.rank - 2, fs.dims, at);
  struct matrix lu = matrix_of(&kb, a, at);
  expr_id k = at[fs.rank - 2] = kb_for_dim(&kb, LOOP_SEQ, fs.n);
  struct element zero = f_const(&kb.f, 0);
  kb_check(&kb, f_binary(&kb.f, SCALAR_NE, matrix_get(&lu, k, k), zero).re, INVALID_ARGUMENT, "Input is not invertible.", NO_EXPR, NO_EXPR);
  kb_store(&kb, o, at, real_element(expr_cast(kb.k, index, k)));
  kb_close(&kb, 1);
  k = at[fs.rank - 2] = kb_for_dim(&kb, LOOP_SEQ, fs.n);
  expr_id from = kb_get(&kb, kb_local(&kb, kb_load(&kb, order, at).re)), here[LIMIT_RANK];
  memcpy(here, at, sizeof here);
  here[fs.rank - 2] = from;
  struct element one = e_now(&kb, kb_load(&kb, o, at)), other = e_now(&kb, kb_load(&kb, o, here));
  kb_store(&kb, o, at, other);
  kb_store(&kb, o, here, one);
  kb_close(&kb, fs.rank - 1);
  op_set_output(c, 1, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- solving: row by row of the right side, all columns of a row side by side ---- */

static void permute_rows(struct kb *kb, const struct matrix *x, uint32_t order, dim n, dim columns) {
  expr_id at[LIMIT_RANK], k = kb_for_dim(kb, LOOP_SEQ, n);
  memcpy(at, x->batch, sizeof *at * (size_t)x->batch_rank);
  at[x->batch_rank] = k;
  exchange_rows(kb, x, columns, k, kb_get(kb, kb_local(kb, kb_load(kb, order, at).re)));
  kb_close(kb, 1);
}

/* L has ones on its diagonal, U has not. */
static void substitute(struct kb *kb, const struct matrix *lu, const struct matrix *x, dim n, dim columns, bool upper) {
  expr_id count = kb_dim(kb, n), one = kb_int(kb, 1), step = kb_for(kb, LOOP_SEQ, count);
  expr_id i = upper ? kb_sub(kb, kb_sub(kb, count, one), step) : step;
  expr_id j = kb_for(kb, LOOP_SEQ, step);
  j = upper ? kb_add(kb, kb_add(kb, i, one), j) : j;
  struct element factor = matrix_take(lu, i, j);
  expr_id column = kb_for_dim(kb, LOOP_PAR, columns);
  matrix_put(x, i, column, e_now(kb, e_sub(kb, matrix_get(x, i, column), e_mul(kb, factor, matrix_get(x, j, column)))));
  kb_close(kb, 2);
  if (upper) {
    struct element pivot = matrix_take(lu, i, i);
    column = kb_for_dim(kb, LOOP_PAR, columns);
    matrix_put(x, i, column, e_now(kb, e_div(kb, matrix_get(x, i, column), pivot)));
    kb_close(kb, 1);
  }
  kb_close(kb, 1);
}

/* right: NO_VALUE for the identity. */
static status solve(struct op_call *c, const struct factors *fs, value_id right, int rank, const dim *dims, const char *text) {
  struct kb kb;
  kb_begin(&kb, c, fs->dtype);
  uint32_t a = kb_in(&kb, fs->lu), order = kb_in(&kb, fs->order), b = right ? kb_in(&kb, right) : 0;
  uint32_t o = kb_out(&kb, fs->dtype, rank, dims);
  expr_id at[LIMIT_RANK];
  dim columns = dims[rank - 1];
  kb_loops(&kb, LOOP_PAR, rank - 2, dims, at);
  struct matrix lu = matrix_of(&kb, a, at), x = matrix_of(&kb, o, at), from = matrix_of(&kb, right ? b : o, at);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, fs->n);
  kb_check(&kb, f_binary(&kb.f, SCALAR_NE, matrix_get(&lu, i, i), f_const(&kb.f, 0)).re, INVALID_ARGUMENT, text, NO_EXPR, NO_EXPR);
  expr_id column = kb_for_dim(&kb, LOOP_PAR, columns);
  struct element same = real_element(expr_binary(kb.k, SCALAR_EQ, i, column));
  matrix_put(&x, i, column, right ? matrix_get(&from, i, column) : f_select(&kb.f, same, f_const(&kb.f, 1), f_const(&kb.f, 0)));
  kb_close(&kb, 2);
  permute_rows(&kb, &x, order, fs->n, columns);
  substitute(&kb, &lu, &x, fs->n, columns, false);
  substitute(&kb, &lu, &x, fs->n, columns, true);
  kb_close(&kb, rank - 2);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

status build_matrix_inverse(struct op_call *c) {
  value_id v;
  struct factors fs;
  TRY(op_input(c, 0, &v));
  TRY(factor(c, v, node_attr_int(c->node, "adjoint", 0), &fs));
  return solve(c, &fs, NO_VALUE, fs.rank, fs.dims, "Input is not invertible.");
}

status build_matrix_solve(struct op_call *c) {
  value_id v, right;
  struct factors fs;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &right));
  TRY(factor(c, v, node_attr_int(c->node, "adjoint", 0), &fs));
  struct flow_value b = *op_value(c, right);
  if (b.rank != fs.rank)
    return fail(INVALID_ARGUMENT, "Input matrix and right-hand side must have the same rank: %s and %s", op_shape_text(c, fs.rank, fs.dims),
                op_shape_text(c, b.rank, b.dims));
  for (int i = 0; i < b.rank - 1; i++)
    TRY(op_equal_dims(c, b.dims[i], fs.dims[i], "Input matrix and right-hand side must have the same number of rows"));
  return solve(c, &fs, right, b.rank, b.dims, "Input matrix is not invertible.");
}

/* ---- determinants ---- */

/* The sign of the exchanges: -1 for each. */
static struct element exchange_sign(struct kb *kb, uint32_t order, const struct factors *fs, const expr_id *batch) {
  struct accumulator sign = acc_begin(kb, f_const(&kb->f, 1));
  expr_id at[LIMIT_RANK];
  memcpy(at, batch, sizeof *at * (size_t)(fs->rank - 2));
  expr_id k = at[fs->rank - 2] = kb_for_dim(kb, LOOP_SEQ, fs->n);
  struct element moved = real_element(expr_binary(kb->k, SCALAR_NE, kb_load(kb, order, at).re, k)), s = acc_get(kb, &sign);
  acc_set(kb, &sign, f_select(&kb->f, moved, f_unary(&kb->f, SCALAR_NEG, s), s));
  kb_close(kb, 1);
  return acc_get(kb, &sign);
}

status build_matrix_determinant(struct op_call *c) {
  value_id v;
  struct factors fs;
  TRY(op_input(c, 0, &v));
  TRY(factor(c, v, false, &fs));
  struct kb kb;
  kb_begin(&kb, c, fs.dtype);
  uint32_t a = kb_in(&kb, fs.lu), order = kb_in(&kb, fs.order), o = kb_out(&kb, fs.dtype, fs.rank - 2, fs.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, fs.rank - 2, fs.dims, at);
  struct matrix lu = matrix_of(&kb, a, at);
  struct accumulator product = acc_begin(&kb, exchange_sign(&kb, order, &fs, at));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, fs.n);
  acc_set(&kb, &product, e_mul(&kb, acc_get(&kb, &product), matrix_get(&lu, i, i)));
  kb_close(&kb, 1);
  kb_store(&kb, o, at, acc_get(&kb, &product));
  kb_close(&kb, fs.rank - 2);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* The sign (of complex matrices: a number on the unit circle) and the logarithm of the absolute value. */
status build_log_matrix_determinant(struct op_call *c) {
  value_id v;
  struct factors fs;
  TRY(op_input(c, 0, &v));
  TRY(factor(c, v, false, &fs));
  struct kb kb;
  kb_begin(&kb, c, fs.dtype);
  struct formula *f = &kb.f;
  uint32_t a = kb_in(&kb, fs.lu), order = kb_in(&kb, fs.order);
  uint32_t s = kb_out(&kb, fs.dtype, fs.rank - 2, fs.dims), l = kb_out(&kb, op_output_dtype(c, 1), fs.rank - 2, fs.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, fs.rank - 2, fs.dims, at);
  struct matrix lu = matrix_of(&kb, a, at);
  struct accumulator sign = acc_begin(&kb, exchange_sign(&kb, order, &fs, at));
  struct accumulator sum = acc_begin(&kb, f_const_as(f, dtype_real(fs.dtype), 0));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, fs.n);
  struct element e = matrix_take(&lu, i, i);
  acc_set(&kb, &sign, e_mul(&kb, acc_get(&kb, &sign), f_sign(f, e)));
  acc_add(&kb, &sum, f_unary(f, SCALAR_LOG, f_norm(f, e)));
  kb_close(&kb, 1);
  kb_store(&kb, s, at, acc_get(&kb, &sign));
  struct element log_abs = acc_get(&kb, &sum);
  kb_store(&kb, l, at, dtype_is_complex(op_output_dtype(c, 1)) ? f_cast(f, op_output_dtype(c, 1), log_abs) : log_abs);
  kb_close(&kb, fs.rank - 2);
  op_set_output(c, 0, kb_value(&kb, s));
  op_set_output(c, 1, kb_value(&kb, l));
  return kb_finish(&kb);
}
