/* ops_lu.c: what is done with a factorisation A = P L U: the factors, inverse, determinants, solving. Gaussian elimination with row
 * exchanges, in place in a copy; row k was exchanged with row order[k]. */
#include "ir/ops/linalg/matrix.h"

struct factors {
  int rank;
  dim dims[LIMIT_RANK], n;
  enum dtype dtype;
  value_id lu, order;
};

/* ---- factorisation: panels of columns, then what they take off the columns behind (Golub, Van Loan: Matrix Computations, 3.2.11) ---- */

#define PANEL 16

/* Row exchange at step k; the pivot's row number is in `from`. */
static void exchange_rows(struct kb *kb, const struct matrix *m, dim n, expr_id k, expr_id from) {
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, k, from));
  expr_id j = kb_for_dim(kb, LOOP_PAR, n);
  struct element a = matrix_take(m, k, j), b = matrix_take(m, from, j);
  matrix_put(m, k, j, b);
  matrix_put(m, from, j, a);
  kb_close(kb, 2);
}

/* A panel's columns first .. first + width - 1 as the rows of `columns`, so that what is done along them is done to vectors. */
struct panel {
  struct kb *kb;
  const struct matrix *m, *columns;
  expr_id n, first, width;
};
/* Opens a loop over start .. n - 1. */
static expr_id rows_from(const struct panel *p, enum loop_kind kind, expr_id start) {
  return kb_add(p->kb, start, kb_for(p->kb, kind, kb_sub(p->kb, p->n, start)));
}
/* One by one: lanes lie apart on one side. */
static void copy_panel(const struct panel *p, bool back) {
  struct kb *kb = p->kb;
  expr_id i = rows_from(p, LOOP_SEQ, p->first), c = kb_for(kb, LOOP_SEQ, p->width), column = kb_add(kb, p->first, c);
  if (back)
    matrix_put(p->m, i, column, matrix_get(p->columns, c, i));
  else
    matrix_put(p->columns, c, i, matrix_get(p->m, i, column));
  kb_close(kb, 2);
}

/* The first of the largest from row k on; NaN counts for nothing, but stays where it is. */
static expr_id find_pivot(const struct panel *p, expr_id c, expr_id k) {
  struct kb *kb = p->kb;
  struct formula *f = &kb->f;
  struct element zero = f_const_as(f, dtype_real(f->dtype), 0), none = f_const_as(f, dtype_real(f->dtype), -1);
  struct accumulator most = acc_begin(kb, none);
  expr_id i = rows_from(p, LOOP_RED, k);
  struct element size = f_norm(f, matrix_get(p->columns, c, i)), known = f_binary(f, SCALAR_LE, zero, size);
  acc_set(kb, &most, f_binary(f, SCALAR_MAX, acc_get(kb, &most), f_select(f, known, size, none)));
  kb_close(kb, 1);
  uint32_t where = kb_local(kb, p->n);
  i = rows_from(p, LOOP_RED, k);
  expr_id is_most = f_binary(f, SCALAR_EQ, f_norm(f, matrix_get(p->columns, c, i)), acc_get(kb, &most)).re;
  kb_set(kb, where, expr_binary(kb->k, SCALAR_MIN, kb_get(kb, where), expr_select(kb->k, is_most, i, p->n)));
  kb_close(kb, 1);
  struct element first = f_norm(f, matrix_get(p->columns, c, k));
  expr_id stays = expr_unary(kb->k, SCALAR_NOT, f_binary(f, SCALAR_LE, zero, first).re);
  return kb_get(kb, kb_local(kb, expr_select(kb->k, stays, k, kb_get(kb, where))));
}

static void exchange_in_panel(const struct panel *p, expr_id k, expr_id from) {
  struct kb *kb = p->kb;
  expr_id c = kb_for(kb, LOOP_SEQ, p->width);
  struct element a = matrix_take(p->columns, c, k), b = matrix_take(p->columns, c, from);
  matrix_put(p->columns, c, k, b);
  matrix_put(p->columns, c, from, a);
  kb_close(kb, 1);
}

/* Subtracts multiples of row k from those below, in the panel; the multiples stay where the zeros would be. */
static void eliminate(const struct panel *p, expr_id c, expr_id k) {
  struct kb *kb = p->kb;
  expr_id next = kb_add(kb, k, kb_int(kb, 1)), after = kb_add(kb, c, kb_int(kb, 1));
  struct element pivot = matrix_take(p->columns, c, k);
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, pivot, f_const(&kb->f, 0)).re);
  expr_id i = rows_from(p, LOOP_PAR, next);
  matrix_put(p->columns, c, i, e_now(kb, e_div(kb, matrix_get(p->columns, c, i), pivot)));
  kb_close(kb, 1);
  expr_id other = kb_add(kb, after, kb_for(kb, LOOP_SEQ, kb_sub(kb, p->width, after)));
  struct element multiple = matrix_take(p->columns, other, k);
  i = rows_from(p, LOOP_PAR, next);
  struct element e = e_sub(kb, matrix_get(p->columns, other, i), e_mul(kb, matrix_get(p->columns, c, i), multiple));
  matrix_put(p->columns, other, i, e_now(kb, e));
  kb_close(kb, 3);
}

/* The columns behind the panel: each row less the rows of the panel above it, times its multiples. A few columns at a time go through
 * all rows; in rows of the panel that makes them those of U. */
static void update_behind(const struct panel *p) {
  struct kb *kb = p->kb;
  struct formula *f = &kb->f;
  expr_id behind = kb_add(kb, p->first, p->width), j = rows_from(p, LOOP_PAR, behind);
  expr_id i = rows_from(p, LOOP_SEQ, kb_add(kb, p->first, kb_int(kb, 1)));
  struct accumulator sum = acc_zero(kb, f->dtype);
  expr_id t = kb_for(kb, LOOP_SEQ, expr_binary(kb->k, SCALAR_MIN, kb_sub(kb, i, p->first), p->width)), row = kb_add(kb, p->first, t);
  acc_add(kb, &sum, e_mul(kb, matrix_get(p->m, i, row), matrix_get(p->m, row, j)));
  kb_close(kb, 1);
  matrix_put(p->m, i, j, e_now(kb, e_sub(kb, matrix_get(p->m, i, j), acc_get(kb, &sum))));
  kb_close(kb, 2);
}

static void factor_panels(struct kb *kb, const struct matrix *m, const struct matrix *columns, uint32_t order, dim size) {
  expr_id n = kb_dim(kb, size), width = kb_int(kb, PANEL), count = kb_div(kb, kb_add(kb, n, kb_int(kb, PANEL - 1)), width);
  struct panel p = {.kb = kb, .m = m, .columns = columns, .n = n};
  p.first = kb_mul(kb, kb_for(kb, LOOP_SEQ, count), width);
  p.width = expr_binary(kb->k, SCALAR_MIN, width, kb_sub(kb, n, p.first));
  copy_panel(&p, false);
  expr_id c = kb_for(kb, LOOP_SEQ, p.width), k = kb_add(kb, p.first, c), pivot = find_pivot(&p, c, k), at[LIMIT_RANK];
  memcpy(at, m->batch, sizeof *at * (size_t)m->batch_rank);
  at[m->batch_rank] = k;
  kb_store(kb, order, at, real_element(pivot));
  exchange_rows(kb, m, size, k, pivot);
  exchange_in_panel(&p, k, pivot);
  eliminate(&p, c, k);
  kb_close(kb, 1);
  copy_panel(&p, true);
  update_behind(&p);
  kb_close(kb, 1);
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
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[x.rank - 2] = dim_min(op_dims(c), out->n, op_dim(c, PANEL));
  dims[x.rank - 1] = matrix_row(c, out->n);
  uint32_t panel = kb_scratch(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix from = matrix_of(&kb, a, at), m = matrix_of(&kb, lu, at), columns = matrix_of(&kb, panel, at);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, out->n), j = kb_for_dim(&kb, LOOP_PAR, out->n);
  matrix_put(&m, i, j, adjoint ? f_conj(&kb.f, matrix_get(&from, j, i)) : matrix_get(&from, i, j));
  kb_close(&kb, 2);
  factor_panels(&kb, &m, &columns, order, out->n);
  kb_close(&kb, x.rank - 2);
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

/* Rows that are solved together: what is solved before is loaded once for all of them. */
#define TOGETHER 4

/* Substitution from the first row, of L, which has ones on its diagonal, or from the last one, of U. */
struct substitution {
  struct kb *kb;
  const struct matrix *lu, *x;
  expr_id n, column;
  bool upper;
};
/* The row that comes in place `i`. */
static expr_id row_at(const struct substitution *s, expr_id i) {
  return s->upper ? kb_sub(s->kb, kb_sub(s->kb, s->n, kb_int(s->kb, 1)), i) : i;
}
/* A place as good as any behind the last one. */
static expr_id place(const struct substitution *s, expr_id first, int64_t offset) {
  return expr_binary(s->kb->k, SCALAR_MIN, kb_add(s->kb, first, kb_int(s->kb, offset)), kb_sub(s->kb, s->n, kb_int(s->kb, 1)));
}

/* The rows in places first and behind, less what the sums say, and what they owe each other. */
static void finish_rows(const struct substitution *s, expr_id first, const struct accumulator *sums) {
  struct kb *kb = s->kb;
  struct accumulator solved[TOGETHER];
  for (int t = 0; t < TOGETHER; t++) {
    expr_id row = row_at(s, place(s, first, t));
    struct element e = e_sub(kb, matrix_get(s->x, row, s->column), acc_get(kb, &sums[t]));
    for (int u = 0; u < t; u++)
      e = e_sub(kb, e, e_mul(kb, matrix_get(s->lu, row, row_at(s, place(s, first, u))), acc_get(kb, &solved[u])));
    solved[t] = acc_begin(kb, s->upper ? e_div(kb, e, matrix_get(s->lu, row, row)) : e);
    kb_if(kb, kb_lt(kb, kb_add(kb, first, kb_int(kb, t)), s->n));
    matrix_put(s->x, row, s->column, acc_get(kb, &solved[t]));
    kb_close(kb, 1);
  }
}

/* A few columns at a time go through all rows, and stay in the caches. */
static void substitute(struct kb *kb, const struct matrix *lu, const struct matrix *x, dim n, dim columns, bool upper) {
  struct substitution s = {.kb = kb, .lu = lu, .x = x, .n = kb_dim(kb, n), .upper = upper};
  expr_id together = kb_int(kb, TOGETHER), blocks = kb_div(kb, kb_add(kb, s.n, kb_int(kb, TOGETHER - 1)), together);
  s.column = kb_for_dim(kb, LOOP_PAR, columns);
  expr_id first = kb_mul(kb, kb_for(kb, LOOP_SEQ, blocks), together);
  struct accumulator sums[TOGETHER];
  for (int t = 0; t < TOGETHER; t++)
    sums[t] = acc_zero(kb, kb->f.dtype);
  expr_id before = row_at(&s, kb_for(kb, LOOP_SEQ, first));
  struct element e = matrix_take(x, before, s.column);
  for (int t = 0; t < TOGETHER; t++)
    acc_add(kb, &sums[t], e_mul(kb, matrix_get(lu, row_at(&s, place(&s, first, t)), before), e));
  kb_close(kb, 1);
  finish_rows(&s, first, sums);
  kb_close(kb, 2);
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
