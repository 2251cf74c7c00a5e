/* schur.c: see schur.h. Shifts, rotations and the test for elements that are as good as 0 are Eigen's, so that order and phases of what
 * follows are too. */
#include "ir/ops/linalg/schur.h"

#include <float.h>

#define STEPS_FOR_EACH 30 /* QR steps for each eigenvalue, on the average, before it gives up */

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, dtype_real(kb->f.dtype), v); }
static struct element complex_num(struct kb *kb, double v) { return f_const_as(&kb->f, kb->f.dtype, v); }
static expr_id minus(struct kb *kb, expr_id a, int by) { return kb_sub(kb, a, kb_int(kb, by)); }
/* |re| + |im| */
static struct element rough_size(struct kb *kb, struct element e) {
  struct element re = real_element(e.re), im = real_element(e.im);
  return e_add(kb, f_unary(&kb->f, SCALAR_ABS, re), f_unary(&kb->f, SCALAR_ABS, im));
}

/* ---- Hessenberg's form ---- */

void schur_hessenberg(struct kb *kb, const struct matrix *t, const struct matrix *u, expr_id n) {
  struct formula *f = &kb->f;
  expr_id i, j;
  if (u) {
    i = kb_for(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, n);
    matrix_put(u, i, j, f_select(f, real_element(expr_binary(kb->k, SCALAR_EQ, i, j)), complex_num(kb, 1), complex_num(kb, 0)));
    kb_close(kb, 2);
  }
  expr_id one = kb_int(kb, 1), column = kb_for(kb, LOOP_SEQ, kb_sub(kb, n, one)), start = kb_add(kb, column, one);
  struct reflection r = reflect_column(kb, t, column, start, n), back = r;
  back.tau = f_conj(f, r.tau);
  j = kb_add(kb, start, kb_for(kb, LOOP_PAR, kb_sub(kb, n, start)));
  reflect_left(kb, &r, t, j);
  kb_close(kb, 1);
  i = kb_for(kb, LOOP_SEQ, n);
  reflect_right(kb, &back, t, i);
  if (u)
    reflect_right(kb, &back, u, i);
  kb_close(kb, 1);
  i = kb_add(kb, kb_add(kb, start, one), kb_for(kb, LOOP_SEQ, minus(kb, kb_sub(kb, n, start), 1)));
  matrix_put(t, i, column, complex_num(kb, 0));
  kb_close(kb, 2);
}

/* ---- rotations ---- */

/* [c, -conj(s); s, c] turns (p, q) into (r, 0). */
struct givens {
  struct element c, s, r;
};
static struct givens givens_of(struct kb *kb, struct element p, struct element q) {
  struct formula *f = &kb->f;
  struct element ap = e_now(kb, f_norm(f, p)), aq = e_now(kb, f_norm(f, q)), zero = num(kb, 0), one = num(kb, 1);
  struct element no_p = f_binary(f, SCALAR_EQ, ap, zero), no_q = f_binary(f, SCALAR_EQ, aq, zero);
  struct element length = e_now(kb, f_norm(f, (struct element){ap.re, aq.re})), negative = real_element(e_lt(kb, f_real(p), zero));
  struct element h = e_now(kb, f_select(f, negative, f_unary(f, SCALAR_NEG, length), length));
  struct element phase = f_select(f, no_p, complex_num(kb, 1), e_div(kb, p, f_select(f, no_p, one, ap)));
  phase = e_now(kb, phase);
  struct element safe = e_now(kb, f_select(f, f_binary(f, SCALAR_EQ, h, zero), one, h));
  struct element sign = f_select(f, negative, num(kb, -1), one);
  struct givens g = {.c = e_now(kb, f_select(f, no_q, sign, e_div(kb, ap, safe)))};
  struct element s = f_unary(f, SCALAR_NEG, e_div(kb, e_mul(kb, f_conj(f, phase), q), safe));
  g.s = e_now(kb, f_select(f, no_q, complex_num(kb, 0), s));
  g.r = e_now(kb, f_select(f, no_q, e_mul(kb, p, sign), e_mul(kb, phase, h)));
  return g;
}

/* Rows k and k + 1, from a column on. */
static void rotate_rows(struct kb *kb, const struct givens *g, const struct matrix *m, expr_id k, expr_id from, expr_id n) {
  expr_id j = kb_add(kb, from, kb_for(kb, LOOP_SEQ, kb_sub(kb, n, from))), next = kb_add(kb, k, kb_int(kb, 1));
  struct element x = matrix_take(m, k, j), y = matrix_take(m, next, j);
  matrix_put(m, k, j, e_sub(kb, e_mul(kb, g->c, x), e_mul(kb, f_conj(&kb->f, g->s), y)));
  matrix_put(m, next, j, e_add(kb, e_mul(kb, g->s, x), e_mul(kb, g->c, y)));
  kb_close(kb, 1);
}
/* Columns k and k + 1 by its adjoint, the first `count` rows. */
static void rotate_columns(struct kb *kb, const struct givens *g, const struct matrix *m, expr_id k, expr_id count) {
  expr_id i = kb_for(kb, LOOP_SEQ, count), next = kb_add(kb, k, kb_int(kb, 1));
  struct element x = matrix_take(m, i, k), y = matrix_take(m, i, next);
  matrix_put(m, i, k, e_sub(kb, e_mul(kb, g->c, x), e_mul(kb, g->s, y)));
  matrix_put(m, i, next, e_add(kb, e_mul(kb, f_conj(&kb->f, g->s), x), e_mul(kb, g->c, y)));
  kb_close(kb, 1);
}

/* ---- QR steps ---- */

/* Whether element (i, i - 1) is nothing beside its neighbours on the diagonal; it is then made 0. */
static expr_id drop_subdiagonal(struct kb *kb, const struct matrix *t, expr_id i) {
  expr_id before = minus(kb, i, 1);
  struct element around = e_add(kb, rough_size(kb, matrix_get(t, before, before)), rough_size(kb, matrix_get(t, i, i)));
  struct element limit = e_mul(kb, around, num(kb, dtype_real(kb->f.dtype) == DTYPE_DOUBLE ? DBL_EPSILON : FLT_EPSILON));
  expr_id none = kb_get(kb, kb_local(kb, f_binary(&kb->f, SCALAR_LE, rough_size(kb, matrix_get(t, i, before)), limit).re));
  kb_if(kb, none);
  matrix_put(t, i, before, complex_num(kb, 0));
  kb_close(kb, 1);
  return none;
}

/* The eigenvalue of the last 2 x 2 block of the active part that is nearer to its last element. */
static struct element near_eigenvalue(struct kb *kb, const struct matrix *t, expr_id last) {
  struct formula *f = &kb->f;
  expr_id before = minus(kb, last, 1);
  struct element a = matrix_take(t, before, before), b = matrix_take(t, before, last), c = matrix_take(t, last, before),
                 d = matrix_take(t, last, last);
  struct element size = e_now(kb, e_add(kb, e_add(kb, f_norm(f, a), f_norm(f, b)), e_add(kb, f_norm(f, c), f_norm(f, d))));
  a = e_now(kb, e_div(kb, a, size));
  d = e_now(kb, e_div(kb, d, size));
  struct element bc = e_now(kb, e_mul(kb, e_div(kb, b, size), e_div(kb, c, size))), difference = e_now(kb, e_sub(kb, a, d));
  struct element root = f_unary(f, SCALAR_SQRT, e_now(kb, e_add(kb, e_mul(kb, difference, difference), e_mul(kb, num(kb, 4), bc))));
  root = e_now(kb, root);
  struct element det = e_now(kb, e_sub(kb, e_mul(kb, a, d), bc)), trace = e_now(kb, e_add(kb, a, d)), half = num(kb, 0.5);
  struct accumulator one = acc_begin(kb, e_mul(kb, e_add(kb, trace, root), half)),
                     two = acc_begin(kb, e_mul(kb, e_sub(kb, trace, root), half));
  struct element size1 = rough_size(kb, acc_get(kb, &one)), size2 = rough_size(kb, acc_get(kb, &two));
  kb_if(kb, e_lt(kb, size2, size1)); /* the smaller one from the product, without cancellation */
  acc_set(kb, &two, e_div(kb, det, acc_get(kb, &one)));
  kb_else(kb);
  kb_if(kb, f_binary(f, SCALAR_NE, size2, num(kb, 0)).re);
  acc_set(kb, &one, e_div(kb, det, acc_get(kb, &two)));
  kb_close(kb, 2);
  struct element first = rough_size(kb, e_sub(kb, acc_get(kb, &one), d)), second = rough_size(kb, e_sub(kb, acc_get(kb, &two), d));
  struct element nearer = f_select(f, real_element(e_lt(kb, first, second)), acc_get(kb, &one), acc_get(kb, &two));
  return e_now(kb, e_mul(kb, nearer, size));
}

/* Now and then another shift, for matrices on which the usual one turns in circles. */
static struct element shift_of(struct kb *kb, const struct matrix *t, expr_id last, expr_id tries) {
  struct accumulator shift = acc_begin(kb, near_eigenvalue(kb, t, last));
  expr_id ten = expr_binary(kb->k, SCALAR_EQ, tries, kb_int(kb, 10)), twenty = expr_binary(kb->k, SCALAR_EQ, tries, kb_int(kb, 20));
  kb_if(kb, kb_and(kb, expr_binary(kb->k, SCALAR_OR, ten, twenty), kb_lt(kb, kb_int(kb, 1), last)));
  struct element a = f_real(matrix_get(t, last, minus(kb, last, 1))), b = f_real(matrix_get(t, minus(kb, last, 1), minus(kb, last, 2)));
  acc_set(kb, &shift, f_cast(&kb->f, kb->f.dtype, e_add(kb, f_unary(&kb->f, SCALAR_ABS, a), f_unary(&kb->f, SCALAR_ABS, b))));
  kb_close(kb, 1);
  return acc_get(kb, &shift);
}

/* Chases the bulge that the shifted first rotation makes from row `first` down to row `last`. */
static void qr_step(struct kb *kb, const struct matrix *t, const struct matrix *u, expr_id first, expr_id last, struct element shift,
                    expr_id n) {
  expr_id one = kb_int(kb, 1), k = kb_add(kb, first, kb_for(kb, LOOP_SEQ, kb_sub(kb, last, first))), next = kb_add(kb, k, one);
  expr_id starts = expr_binary(kb->k, SCALAR_EQ, k, first),
          column = kb_get(kb, kb_local(kb, expr_select(kb->k, starts, k, minus(kb, k, 1))));
  struct element p = matrix_take(t, k, column), q = matrix_take(t, next, column);
  p = e_now(kb, f_select(&kb->f, real_element(starts), e_sub(kb, p, shift), p));
  struct givens g = givens_of(kb, p, q);
  kb_if(kb, expr_unary(kb->k, SCALAR_NOT, starts));
  matrix_put(t, k, column, g.r);
  matrix_put(t, next, column, complex_num(kb, 0));
  kb_close(kb, 1);
  rotate_rows(kb, &g, t, k, k, n);
  expr_id rows = kb_add(kb, expr_binary(kb->k, SCALAR_MIN, kb_add(kb, next, one), last), one);
  rotate_columns(kb, &g, t, k, rows);
  rotate_columns(kb, &g, u, k, n);
  kb_close(kb, 1);
}

expr_id schur_factor(struct kb *kb, const struct matrix *t, const struct matrix *u, expr_id n) {
  schur_hessenberg(kb, t, u, n);
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1), most = kb_mul(kb, n, kb_int(kb, STEPS_FOR_EACH));
  uint32_t end = kb_local(kb, minus(kb, n, 1)), tries = kb_local(kb, zero), total = kb_local(kb, zero);
  kb_while(kb, kb_and(kb, kb_lt(kb, zero, kb_get(kb, end)), kb_lt(kb, kb_get(kb, total), most)));
  expr_id last = kb_get(kb, kb_local(kb, kb_get(kb, end)));
  kb_if(kb, drop_subdiagonal(kb, t, last));
  kb_set(kb, end, minus(kb, last, 1));
  kb_set(kb, tries, zero);
  kb_else(kb);
  kb_set(kb, tries, kb_add(kb, kb_get(kb, tries), one));
  kb_set(kb, total, kb_add(kb, kb_get(kb, total), one));
  uint32_t start = kb_local(kb, minus(kb, last, 1)), search = kb_local(kb, kb_lt(kb, one, last));
  kb_while(kb, kb_get(kb, search));
  expr_id here = kb_get(kb, start);
  kb_if(kb, drop_subdiagonal(kb, t, here));
  kb_set(kb, search, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_else(kb);
  kb_set(kb, start, minus(kb, here, 1));
  kb_set(kb, search, kb_lt(kb, zero, kb_get(kb, start)));
  kb_close(kb, 2);
  expr_id first = kb_get(kb, kb_local(kb, kb_get(kb, start)));
  qr_step(kb, t, u, first, last, shift_of(kb, t, last, kb_get(kb, tries)), n);
  kb_close(kb, 2);
  return kb_lt(kb, kb_get(kb, end), one);
}

/* A pair's block in rows k and k + 1 becomes triangular. */
static void split_pair(struct kb *kb, const struct matrix *t, const struct matrix *u, expr_id k, expr_id n) {
  struct formula *f = &kb->f;
  expr_id next = kb_add(kb, k, kb_int(kb, 1));
  struct element a = f_real(matrix_take(t, k, k)), b = f_real(matrix_take(t, k, next)), c = f_real(matrix_take(t, next, k));
  struct element d = f_real(matrix_take(t, next, next)), p = e_now(kb, e_mul(kb, num(kb, 0.5), e_sub(kb, a, d)));
  struct element product = e_add(kb, e_mul(kb, p, p), e_mul(kb, c, b)), size = f_unary(f, SCALAR_ABS, product);
  struct element z = e_now(kb, f_unary(f, SCALAR_SQRT, size)), re = e_now(kb, e_add(kb, d, p));
  struct element value = {re.re, z.re}, other = {re.re, f_unary(f, SCALAR_NEG, z).re};
  struct element off = e_sub(kb, re, a), length = e_add(kb, e_mul(kb, b, b), e_add(kb, e_mul(kb, off, off), e_mul(kb, z, z)));
  length = e_now(kb, f_unary(f, SCALAR_SQRT, length));
  struct element turned = f_select(f, real_element(e_lt(kb, b, num(kb, 0))), length, f_unary(f, SCALAR_NEG, length));
  struct givens g = {.c = e_now(kb, e_div(kb, f_unary(f, SCALAR_ABS, b), length))};
  g.s = e_now(kb, e_div(kb, (struct element){off.re, z.re}, f_cast(f, f->dtype, turned)));
  rotate_rows(kb, &g, t, k, k, n);
  rotate_columns(kb, &g, t, k, kb_add(kb, next, kb_int(kb, 1)));
  rotate_columns(kb, &g, u, k, n);
  matrix_put(t, k, k, value);
  matrix_put(t, next, next, other);
  matrix_put(t, next, k, complex_num(kb, 0));
}

void schur_of_real(struct kb *kb, const struct matrix *real_t, const struct matrix *real_u, const struct matrix *t, const struct matrix *u,
                   expr_id n) {
  expr_id one = kb_int(kb, 1), i = kb_for(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, n);
  matrix_put(t, i, j, matrix_get(real_t, i, j));
  matrix_put(u, i, j, matrix_get(real_u, i, j));
  kb_close(kb, 2);
  expr_id k = kb_for(kb, LOOP_SEQ, kb_sub(kb, n, one));
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, matrix_get(real_t, kb_add(kb, k, one), k), num(kb, 0)).re);
  split_pair(kb, t, u, k, n);
  kb_close(kb, 2);
}

void schur_restore(struct kb *kb, const struct matrix *u, const struct matrix *x, const struct matrix *work, const struct matrix *out,
                   expr_id n) {
  struct formula *f = &kb->f;
  enum dtype dtype = kb->k->buffers.items[out->buffer].dtype;
  expr_id one = kb_int(kb, 1), i = kb_for(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, n);
  struct accumulator sum = acc_begin(kb, complex_num(kb, 0));
  expr_id k = kb_for(kb, LOOP_SEQ, kb_add(kb, j, one));
  acc_add(kb, &sum, e_mul(kb, matrix_get(u, i, k), matrix_get(x, k, j)));
  kb_close(kb, 1);
  matrix_put(work, i, j, acc_get(kb, &sum));
  kb_close(kb, 2);
  i = kb_for(kb, LOOP_SEQ, n);
  j = kb_for(kb, LOOP_SEQ, n);
  sum = acc_begin(kb, complex_num(kb, 0));
  k = kb_for(kb, LOOP_SEQ, n);
  acc_add(kb, &sum, e_mul(kb, matrix_get(work, i, k), f_conj(f, matrix_get(u, j, k))));
  kb_close(kb, 1);
  matrix_put(out, i, j, f_cast(f, dtype, acc_get(kb, &sum)));
  kb_close(kb, 2);
}
