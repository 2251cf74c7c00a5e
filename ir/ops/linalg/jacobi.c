/* jacobi.c: see jacobi.h. */
#include "ir/ops/linalg/jacobi.h"

#include <float.h>

#define SWEEPS 60

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, dtype_real(kb->f.dtype), v); }
static bool is_double(const struct kb *kb) { return dtype_real(kb->f.dtype) == DTYPE_DOUBLE; }
static struct element smallest(struct kb *kb) { return num(kb, is_double(kb) ? DBL_MIN : FLT_MIN); }
static struct element size_of(struct kb *kb, struct element e) { return f_norm(&kb->f, e); }
static struct element square_of(struct kb *kb, struct element e) { return f_real(e_mul(kb, e, f_conj(&kb->f, e))); }
static struct element root_of(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_SQRT, e); }
static struct element negative(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_NEG, e); }
static struct element larger(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_MAX, a, b); }

/* ---- QR with column exchanges: the longest rest of a column comes next ---- */

static expr_id longest_column(struct kb *kb, const struct pivoted_qr *d, expr_id k) {
  struct accumulator longest = acc_begin(kb, num(kb, -1));
  uint32_t which = kb_local(kb, k);
  expr_id j = kb_add(kb, k, kb_for(kb, LOOP_SEQ, kb_sub(kb, d->columns, k)));
  struct accumulator square = acc_begin(kb, num(kb, 0));
  expr_id i = kb_add(kb, k, kb_for(kb, LOOP_SEQ, kb_sub(kb, d->rows, k)));
  acc_add(kb, &square, square_of(kb, matrix_get(&d->a, i, j)));
  kb_close(kb, 1);
  expr_id better = e_lt(kb, acc_get(kb, &longest), acc_get(kb, &square));
  kb_set(kb, which, expr_select(kb->k, better, j, kb_get(kb, which)));
  acc_set(kb, &longest, f_select(&kb->f, real_element(better), acc_get(kb, &square), acc_get(kb, &longest)));
  kb_close(kb, 1);
  return kb_get(kb, kb_local(kb, kb_get(kb, which)));
}

void pivoted_qr(struct kb *kb, const struct pivoted_qr *d) {
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0);
  matrix_set_identity(&d->p, d->columns, d->columns);
  matrix_set_identity(&d->q, d->rows, d->q_columns);
  expr_id k = kb_for(kb, LOOP_SEQ, d->columns), next = kb_add(kb, k, one), other = longest_column(kb, d, k);
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, k, other));
  matrix_exchange_columns(&d->a, d->rows, k, other);
  matrix_exchange_columns(&d->p, d->columns, k, other);
  kb_close(kb, 1);
  struct reflection r = reflect_column(kb, &d->a, k, k, d->rows);
  matrix_put(&d->tau, zero, k, r.tau);
  reflect_left(kb, &r, &d->a, kb_add(kb, next, kb_for(kb, LOOP_PAR, kb_sub(kb, d->columns, next))));
  kb_close(kb, 2);
  expr_id i = kb_for(kb, LOOP_SEQ, d->columns), j = kb_for(kb, LOOP_SEQ, d->columns);
  struct element upper = real_element(expr_binary(kb->k, SCALAR_LE, i, j)), e = matrix_get(&d->a, i, j);
  e = f_select(&kb->f, upper, e, f_const_like(&kb->f, e, 0));
  matrix_put(&d->r, d->adjoint ? j : i, d->adjoint ? i : j, d->adjoint ? f_conj(&kb->f, e) : e);
  kb_close(kb, 2);
  expr_id step = kb_for(kb, LOOP_SEQ, d->columns);
  k = kb_sub(kb, kb_sub(kb, d->columns, one), step);
  r = (struct reflection){&d->a, k, k, d->rows, f_conj(&kb->f, matrix_take(&d->tau, zero, k))};
  reflect_left(kb, &r, &d->q, kb_for(kb, LOOP_PAR, d->q_columns));
  kb_close(kb, 2);
}

/* ---- rotations ---- */

struct turn {
  struct kb *kb;
  const struct matrix *w, *left, *right; /* left, right: NULL where nobody asks for vectors */
  expr_id left_rows, right_rows, n, p, q;
};

/* x' = a x + b y, y' = c x + d y for rows (or columns) p and q. */
struct plane {
  struct element a, b, c, d;
};
static void apply(const struct turn *t, const struct matrix *m, expr_id count, bool rows, const struct plane *r) {
  struct kb *kb = t->kb;
  if (!m)
    return;
  expr_id k = kb_for(kb, rows ? LOOP_PAR : LOOP_SEQ, count); /* along a column elements lie apart */
  struct element x = rows ? matrix_take(m, t->p, k) : matrix_take(m, k, t->p), y = rows ? matrix_take(m, t->q, k) : matrix_take(m, k, t->q);
  matrix_put(m, rows ? t->p : k, rows ? k : t->p, e_add(kb, e_mul(kb, r->a, x), e_mul(kb, r->b, y)));
  matrix_put(m, rows ? t->q : k, rows ? k : t->q, e_add(kb, e_mul(kb, r->c, x), e_mul(kb, r->d, y)));
  kb_close(kb, 1);
}
static void scale_line(const struct turn *t, const struct matrix *m, expr_id count, bool row, expr_id which, struct element by) {
  struct kb *kb = t->kb;
  if (!m)
    return;
  expr_id k = kb_for(kb, LOOP_SEQ, count);
  struct element e = e_now(kb, e_mul(kb, row ? matrix_get(m, which, k) : matrix_get(m, k, which), by));
  matrix_put(m, row ? which : k, row ? k : which, e);
  kb_close(kb, 1);
}

static struct element at(const struct turn *t, expr_id i, expr_id j) { return matrix_get(t->w, i, j); }

/* Makes element (i, j) real by its row, or by its column. */
static void straighten(const struct turn *t, expr_id i, expr_id j, bool by_row) {
  struct kb *kb = t->kb;
  struct element e = matrix_take(t->w, i, j);
  kb_if(kb, e_lt(kb, smallest(kb), f_unary(&kb->f, SCALAR_ABS, f_imag(&kb->f, e))));
  struct element z = e_now(kb, e_div(kb, size_of(kb, e), e));
  scale_line(t, t->w, t->n, by_row, by_row ? i : j, z);
  if (by_row)
    scale_line(t, t->left, t->left_rows, false, i, f_conj(&kb->f, z));
  else
    scale_line(t, t->right, t->right_rows, false, j, z);
  kb_close(kb, 1);
}

/* The complex 2 x 2 block becomes real. */
static void make_real(const struct turn *t) {
  struct kb *kb = t->kb;
  struct formula *f = &kb->f;
  struct element first = matrix_take(t->w, t->p, t->p), below = matrix_take(t->w, t->q, t->p);
  struct element length = e_now(kb, root_of(kb, e_add(kb, square_of(kb, first), square_of(kb, below))));
  kb_if(kb, f_binary(f, SCALAR_EQ, length, num(kb, 0)).re);
  straighten(t, t->p, t->q, true);
  straighten(t, t->q, t->q, true);
  kb_else(kb);
  struct element c = e_now(kb, e_div(kb, f_conj(f, first), length)), s = e_now(kb, e_div(kb, below, length));
  struct plane rows = {c, f_conj(f, s), negative(kb, s), f_conj(f, c)}, columns = {f_conj(f, c), s, negative(kb, f_conj(f, s)), c};
  apply(t, t->w, t->n, true, &rows);
  apply(t, t->left, t->left_rows, false, &columns);
  straighten(t, t->p, t->q, false);
  straighten(t, t->q, t->q, true);
  kb_close(kb, 1);
}

/* A rotation that makes the block symmetric, then Jacobi's that makes it diagonal. */
static void diagonalize_block(const struct turn *t) {
  struct kb *kb = t->kb;
  struct formula *f = &kb->f;
  struct element a = e_now(kb, f_real(at(t, t->p, t->p))), b = e_now(kb, f_real(at(t, t->p, t->q)));
  struct element c = e_now(kb, f_real(at(t, t->q, t->p))), d = e_now(kb, f_real(at(t, t->q, t->q)));
  struct element one = num(kb, 1), zero = num(kb, 0), tiny = smallest(kb);
  struct element sum = e_now(kb, e_add(kb, a, d)), difference = e_now(kb, e_sub(kb, c, b));
  struct element symmetric = real_element(e_lt(kb, f_unary(f, SCALAR_ABS, difference), tiny));
  struct element u = e_div(kb, sum, f_select(f, symmetric, one, difference)), h = e_now(kb, root_of(kb, e_add(kb, one, e_mul(kb, u, u))));
  struct element c1 = e_now(kb, f_select(f, symmetric, one, e_div(kb, u, h))),
                 s1 = e_now(kb, f_select(f, symmetric, zero, e_div(kb, one, h)));
  struct element x = e_now(kb, e_add(kb, e_mul(kb, c1, a), e_mul(kb, s1, c))), y = e_now(kb, e_add(kb, e_mul(kb, c1, b), e_mul(kb, s1, d)));
  struct element z = e_now(kb, e_sub(kb, e_mul(kb, c1, d), e_mul(kb, s1, b)));
  struct element size = f_unary(f, SCALAR_ABS, y), twice = e_add(kb, size, size), none = real_element(e_lt(kb, twice, tiny));
  struct element tau = e_now(kb, e_div(kb, e_sub(kb, x, z), f_select(f, none, one, twice)));
  struct element w = root_of(kb, e_add(kb, e_mul(kb, tau, tau), one)), positive = real_element(e_lt(kb, zero, tau));
  struct element tangent = e_now(kb, e_div(kb, one, f_select(f, positive, e_add(kb, tau, w), e_sub(kb, tau, w))));
  struct element n = e_now(kb, e_div(kb, one, root_of(kb, e_add(kb, e_mul(kb, tangent, tangent), one))));
  struct element sign = f_select(f, real_element(e_lt(kb, y, zero)), num(kb, -1), one);
  struct element c2 = e_now(kb, f_select(f, none, one, n)),
                 s2 = f_select(f, none, zero, negative(kb, e_mul(kb, e_mul(kb, sign, tangent), n)));
  s2 = e_now(kb, s2);
  struct element cl = e_now(kb, e_add(kb, e_mul(kb, c1, c2), e_mul(kb, s1, s2))),
                 sl = e_now(kb, e_sub(kb, e_mul(kb, s1, c2), e_mul(kb, c1, s2)));
  struct plane left = {cl, sl, negative(kb, sl), cl}, right = {c2, negative(kb, s2), s2, c2};
  apply(t, t->w, t->n, true, &left);
  apply(t, t->left, t->left_rows, false, &left);
  apply(t, t->w, t->n, false, &right);
  apply(t, t->right, t->right_rows, false, &right);
}

static struct element threshold(struct kb *kb, const struct accumulator *largest) {
  return larger(kb, smallest(kb), e_mul(kb, num(kb, is_double(kb) ? 2 * DBL_EPSILON : 2 * FLT_EPSILON), acc_get(kb, largest)));
}
static expr_id is_coupled(const struct turn *t, const struct accumulator *largest) {
  struct kb *kb = t->kb;
  struct element coupling = larger(kb, size_of(kb, at(t, t->p, t->q)), size_of(kb, at(t, t->q, t->p)));
  return e_lt(kb, threshold(kb, largest), coupling);
}
static void note_diagonal(const struct turn *t, const struct accumulator *largest) {
  struct kb *kb = t->kb;
  struct element both = larger(kb, size_of(kb, at(t, t->p, t->p)), size_of(kb, at(t, t->q, t->q)));
  acc_set(kb, largest, larger(kb, acc_get(kb, largest), both));
}

/* What is left are signs (or phases) of the diagonal: they go to the left. */
static void make_positive(const struct turn *t) {
  struct kb *kb = t->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, t->n);
  struct element e = matrix_take(t->w, i, i), size = e_now(kb, size_of(kb, e));
  kb_if(kb, e_lt(kb, num(kb, 0), size));
  scale_line(t, t->left, t->left_rows, false, i, e_now(kb, e_div(kb, e, size)));
  matrix_put(t->w, i, i, size);
  kb_close(kb, 2);
}

void jacobi_diagonalize(struct kb *kb, const struct matrix *w, const struct matrix *left, expr_id left_rows, const struct matrix *right,
                        expr_id right_rows, expr_id n) {
  struct turn t = {.kb = kb, .w = w, .left = left, .right = right, .left_rows = left_rows, .right_rows = right_rows, .n = n};
  bool is_complex = dtype_is_complex(kb->k->buffers.items[w->buffer].dtype);
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  acc_set(kb, &largest, larger(kb, acc_get(kb, &largest), size_of(kb, matrix_get(w, i, i))));
  kb_close(kb, 1);
  uint32_t rotated = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1)), sweeps = kb_local(kb, kb_int(kb, 0));
  kb_while(kb, kb_and(kb, kb_get(kb, rotated), kb_lt(kb, kb_get(kb, sweeps), kb_int(kb, SWEEPS))));
  kb_set(kb, rotated, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_set(kb, sweeps, kb_add(kb, kb_get(kb, sweeps), kb_int(kb, 1)));
  t.p = kb_for(kb, LOOP_SEQ, n);
  t.q = kb_for(kb, LOOP_SEQ, t.p);
  kb_if(kb, is_coupled(&t, &largest));
  kb_set(kb, rotated, expr_int(kb->k, DTYPE_BOOL, 1));
  uint32_t still = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  if (is_complex) {
    make_real(&t);
    note_diagonal(&t, &largest);
    kb_set(kb, still, is_coupled(&t, &largest));
  }
  kb_if(kb, kb_get(kb, still));
  diagonalize_block(&t);
  note_diagonal(&t, &largest);
  kb_close(kb, 5);
  make_positive(&t);
}
