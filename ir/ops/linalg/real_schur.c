/* real_schur.c: see real_schur.h. */
#include "ir/ops/linalg/real_schur.h"

#include <float.h>

#define STEPS_FOR_EACH 40 /* QR steps for each eigenvalue, on the average, before it gives up */

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, kb->f.dtype, v); }
static struct element size_of(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_ABS, e); }
static struct element square(struct kb *kb, struct element e) { return e_mul(kb, e, e); }
static expr_id equal(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_EQ, a, b); }
static expr_id minus(struct kb *kb, expr_id a, int by) { return kb_sub(kb, a, kb_int(kb, by)); }
static expr_id now(struct kb *kb, expr_id e) { return kb_get(kb, kb_local(kb, e)); }
static struct element epsilon(struct kb *kb) { return num(kb, kb->f.dtype == DTYPE_DOUBLE ? DBL_EPSILON : FLT_EPSILON); }
static struct element least(struct kb *kb) { return num(kb, kb->f.dtype == DTYPE_DOUBLE ? DBL_MIN : FLT_MIN); }
static struct element larger(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_MAX, a, b); }

/* What the parts of the walk share. */
struct walk {
  struct kb *kb;
  const struct matrix *t, *u;
  expr_id n;
  uint32_t last, tries, total; /* the end of the active part; steps for it, and for all */
  struct accumulator moved;    /* what was subtracted from the active part's diagonal */
  struct element nothing;      /* what is as good as 0 whatever stands around it */
  struct accumulator shift[3]; /* both shifts, and the product of the elements beside them */
};

/* ---- reflections of two or three rows ---- */

struct bulge {
  struct element tail[2], tau, multiple;
  int rows;
};
static struct bulge bulge_of(struct kb *kb, const struct element *x, int rows) {
  struct bulge b = {.rows = rows};
  struct accumulator tail[2] = {acc_begin(kb, num(kb, 0)), acc_begin(kb, num(kb, 0))};
  struct accumulator tau = acc_begin(kb, num(kb, 0)), multiple = acc_begin(kb, x[0]);
  struct element rest = square(kb, x[1]);
  rest = e_now(kb, rows == 3 ? e_add(kb, rest, square(kb, x[2])) : rest);
  kb_if(kb, e_lt(kb, least(kb), rest));
  struct element length = e_now(kb, f_unary(&kb->f, SCALAR_SQRT, e_add(kb, square(kb, x[0]), rest)));
  struct element negative = real_element(e_lt(kb, x[0], num(kb, 0)));
  acc_set(kb, &multiple, f_select(&kb->f, negative, length, f_unary(&kb->f, SCALAR_NEG, length)));
  for (int i = 0; i + 1 < rows; i++)
    acc_set(kb, &tail[i], e_div(kb, x[i + 1], e_sub(kb, x[0], acc_get(kb, &multiple))));
  acc_set(kb, &tau, e_div(kb, e_sub(kb, acc_get(kb, &multiple), x[0]), acc_get(kb, &multiple)));
  kb_close(kb, 1);
  b.tail[0] = acc_get(kb, &tail[0]);
  b.tail[1] = acc_get(kb, &tail[1]);
  b.tau = acc_get(kb, &tau);
  b.multiple = acc_get(kb, &multiple);
  return b;
}
/* Elements in a row of one another, reflected. */
static void reflect(struct kb *kb, const struct bulge *b, const struct matrix *m, bool along_column, expr_id k, expr_id other) {
  struct element x[3];
  for (int i = 0; i < b->rows; i++) {
    expr_id at = kb_add(kb, k, kb_int(kb, i));
    x[i] = along_column ? matrix_take(m, at, other) : matrix_take(m, other, at);
  }
  struct element sum = e_mul(kb, b->tail[0], x[1]);
  sum = b->rows == 3 ? e_add(kb, sum, e_mul(kb, b->tail[1], x[2])) : sum;
  sum = e_now(kb, e_add(kb, sum, x[0]));
  struct element part = e_now(kb, e_mul(kb, b->tau, sum));
  for (int i = 0; i < b->rows; i++) {
    expr_id at = kb_add(kb, k, kb_int(kb, i));
    struct element by = !i ? part : along_column ? e_mul(kb, e_mul(kb, b->tau, b->tail[i - 1]), sum) : e_mul(kb, part, b->tail[i - 1]);
    struct element e = e_sub(kb, x[i], by);
    matrix_put(m, along_column ? at : other, along_column ? other : at, e);
  }
}
/* Rows and columns k .. of T, of which `count` rows are not zero there, and columns of U. */
static void reflect_all(struct walk *w, const struct bulge *b, expr_id k, expr_id count) {
  struct kb *kb = w->kb;
  expr_id j = kb_add(kb, k, kb_for(kb, LOOP_SEQ, kb_sub(kb, w->n, k)));
  reflect(kb, b, w->t, true, k, j);
  kb_close(kb, 1);
  expr_id i = kb_for(kb, LOOP_SEQ, count);
  reflect(kb, b, w->t, false, k, i);
  kb_close(kb, 1);
  i = kb_for(kb, LOOP_SEQ, w->n);
  reflect(kb, b, w->u, false, k, i);
  kb_close(kb, 1);
}

/* ---- where the active part begins, and what it ends with ---- */

/* The row from which on no subdiagonal element up to `last` is as good as 0. */
static expr_id active_start(struct walk *w, expr_id last) {
  struct kb *kb = w->kb;
  uint32_t start = kb_local(kb, last), search = kb_local(kb, kb_lt(kb, kb_int(kb, 0), last));
  kb_while(kb, kb_get(kb, search));
  expr_id here = now(kb, kb_get(kb, start)), before = minus(kb, here, 1);
  struct element around = e_add(kb, size_of(kb, matrix_get(w->t, before, before)), size_of(kb, matrix_get(w->t, here, here)));
  struct element limit = larger(kb, e_mul(kb, around, epsilon(kb)), w->nothing);
  kb_if(kb, f_binary(&kb->f, SCALAR_LE, size_of(kb, matrix_get(w->t, here, before)), limit).re);
  kb_set(kb, search, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_else(kb);
  kb_set(kb, start, before);
  kb_set(kb, search, kb_lt(kb, kb_int(kb, 0), before));
  kb_close(kb, 2);
  return now(kb, kb_get(kb, start));
}

static void add_to(struct kb *kb, const struct matrix *m, expr_id i, struct element e) {
  struct element sum = e_now(kb, e_add(kb, matrix_get(m, i, i), e));
  matrix_put(m, i, i, sum);
}
static void end_part(struct walk *w, expr_id last, int rows) {
  kb_set(w->kb, w->last, minus(w->kb, last, rows));
  kb_set(w->kb, w->tries, kb_int(w->kb, 0));
}
static void take_one(struct walk *w, expr_id last) {
  struct kb *kb = w->kb;
  add_to(kb, w->t, last, acc_get(kb, &w->moved));
  kb_if(kb, kb_lt(kb, kb_int(kb, 0), last));
  matrix_put(w->t, last, minus(kb, last, 1), num(kb, 0));
  kb_close(kb, 1);
  end_part(w, last, 1);
}

/* c and s of the rotation that turns (p, q) into (r, 0); q is not 0. */
static void rotation_of(struct kb *kb, struct element p, struct element q, struct element *c, struct element *s) {
  struct formula *f = &kb->f;
  struct element one = num(kb, 1), p_larger = real_element(e_lt(kb, size_of(kb, q), size_of(kb, p)));
  struct element large = e_now(kb, f_select(f, p_larger, p, q)), t = e_now(kb, e_div(kb, f_select(f, p_larger, q, p), large));
  struct element root = f_unary(f, SCALAR_SQRT, e_add(kb, one, square(kb, t)));
  root = e_now(kb, f_select(f, real_element(e_lt(kb, large, num(kb, 0))), f_unary(f, SCALAR_NEG, root), root));
  struct element near_one = e_now(kb, e_div(kb, one, root)), minus_near = f_unary(f, SCALAR_NEG, near_one);
  *c = e_now(kb, f_select(f, p_larger, near_one, e_mul(kb, t, near_one)));
  *s = e_now(kb, f_select(f, p_larger, f_unary(f, SCALAR_NEG, e_mul(kb, t, near_one)), minus_near));
}
static void rotate(struct kb *kb, struct element c, struct element s, const struct matrix *m, bool rows, expr_id k, expr_id other) {
  expr_id next = kb_add(kb, k, kb_int(kb, 1));
  struct element x = rows ? matrix_take(m, k, other) : matrix_take(m, other, k);
  struct element y = rows ? matrix_take(m, next, other) : matrix_take(m, other, next);
  matrix_put(m, rows ? k : other, rows ? other : k, e_sub(kb, e_mul(kb, c, x), e_mul(kb, s, y)));
  matrix_put(m, rows ? next : other, rows ? other : next, e_add(kb, e_mul(kb, s, x), e_mul(kb, c, y)));
}

/* The last two rows: a pair stays a block, two real eigenvalues become triangular. */
static void take_two(struct walk *w, expr_id last) {
  struct kb *kb = w->kb;
  expr_id k = now(kb, minus(kb, last, 1));
  struct element low = matrix_take(w->t, last, k), half = num(kb, 0.5), zero = num(kb, 0);
  struct element p = e_now(kb, e_mul(kb, half, e_sub(kb, matrix_get(w->t, k, k), matrix_get(w->t, last, last))));
  struct element q = e_now(kb, e_add(kb, square(kb, p), e_mul(kb, low, matrix_get(w->t, k, last)))), c, s;
  add_to(kb, w->t, last, acc_get(kb, &w->moved));
  add_to(kb, w->t, k, acc_get(kb, &w->moved));
  kb_if(kb, f_binary(&kb->f, SCALAR_LE, zero, q).re);
  struct element z = e_now(kb, f_unary(&kb->f, SCALAR_SQRT, q)), below = real_element(e_lt(kb, p, zero));
  rotation_of(kb, e_now(kb, f_select(&kb->f, below, e_sub(kb, p, z), e_add(kb, p, z))), low, &c, &s);
  expr_id j = kb_add(kb, k, kb_for(kb, LOOP_SEQ, kb_sub(kb, w->n, k)));
  rotate(kb, c, s, w->t, true, k, j);
  kb_close(kb, 1);
  expr_id i = kb_for(kb, LOOP_SEQ, kb_add(kb, last, kb_int(kb, 1)));
  rotate(kb, c, s, w->t, false, k, i);
  kb_close(kb, 1);
  i = kb_for(kb, LOOP_SEQ, w->n);
  rotate(kb, c, s, w->u, false, k, i);
  kb_close(kb, 1);
  matrix_put(w->t, last, k, zero);
  kb_close(kb, 1);
  kb_if(kb, kb_lt(kb, kb_int(kb, 1), last));
  matrix_put(w->t, k, minus(kb, k, 1), zero);
  kb_close(kb, 1);
  end_part(w, last, 2);
}

/* ---- shifts ---- */

static void move_diagonal(struct walk *w, expr_id last, struct element by) {
  struct kb *kb = w->kb;
  acc_add(kb, &w->moved, by);
  expr_id i = kb_for(kb, LOOP_SEQ, kb_add(kb, last, kb_int(kb, 1)));
  add_to(kb, w->t, i, f_unary(&kb->f, SCALAR_NEG, by));
  kb_close(kb, 1);
}
static void set_shifts(struct walk *w, struct element both, struct element product) {
  acc_set(w->kb, &w->shift[0], both);
  acc_set(w->kb, &w->shift[1], both);
  acc_set(w->kb, &w->shift[2], product);
}
/* At the first step for a part, and every 32 after it: the diagonal moves by the nearer of two real eigenvalues. */
static void nearer_shift(struct walk *w, expr_id last) {
  struct kb *kb = w->kb;
  struct element first = acc_get(kb, &w->shift[0]), second = acc_get(kb, &w->shift[1]), product = acc_get(kb, &w->shift[2]);
  struct element half = e_now(kb, e_div(kb, e_sub(kb, second, first), num(kb, 2))), s = e_now(kb, e_add(kb, square(kb, half), product));
  kb_if(kb, e_lt(kb, num(kb, 0), s));
  struct element root = e_now(kb, f_unary(&kb->f, SCALAR_SQRT, s)), negative = real_element(e_lt(kb, second, first));
  root = e_add(kb, f_select(&kb->f, negative, f_unary(&kb->f, SCALAR_NEG, root), root), half);
  struct element by = e_now(kb, e_sub(kb, first, e_div(kb, product, root)));
  move_diagonal(w, last, by);
  set_shifts(w, num(kb, 0.964), num(kb, 0.964));
  kb_close(kb, 1);
}
/* Between those: Wilkinson's, for matrices on which the usual shifts turn in circles. */
static void other_shift(struct walk *w, expr_id last) {
  struct kb *kb = w->kb;
  expr_id k = minus(kb, last, 1);
  move_diagonal(w, last, e_now(kb, acc_get(kb, &w->shift[0])));
  struct element low = size_of(kb, matrix_get(w->t, last, k)), lower = size_of(kb, matrix_get(w->t, k, minus(kb, last, 2)));
  struct element s = e_now(kb, e_add(kb, low, lower));
  set_shifts(w, e_mul(kb, num(kb, 0.75), s), e_mul(kb, num(kb, -0.4375), square(kb, s)));
}
static void choose_shifts(struct walk *w, expr_id last) {
  struct kb *kb = w->kb;
  expr_id k = minus(kb, last, 1), tries = now(kb, kb_get(kb, w->tries)), zero = kb_int(kb, 0);
  acc_set(kb, &w->shift[0], matrix_get(w->t, last, last));
  acc_set(kb, &w->shift[1], matrix_get(w->t, k, k));
  acc_set(kb, &w->shift[2], e_mul(kb, matrix_get(w->t, last, k), matrix_get(w->t, k, last)));
  kb_if(kb, equal(kb, kb_mod(kb, tries, kb_int(kb, 16)), zero));
  kb_if(kb, equal(kb, kb_mod(kb, tries, kb_int(kb, 32)), zero));
  nearer_shift(w, last);
  kb_else(kb);
  other_shift(w, last);
  kb_close(kb, 2);
  kb_set(kb, w->tries, kb_add(kb, tries, kb_int(kb, 1)));
  kb_set(kb, w->total, kb_add(kb, kb_get(kb, w->total), kb_int(kb, 1)));
}

/* ---- a step ---- */

/* The row where the bulge begins, and the first column of (T - a)(T - b) there: below it a small enough element lies. */
static expr_id step_begin(struct walk *w, expr_id start, expr_id last, struct accumulator *v) {
  struct kb *kb = w->kb;
  const struct matrix *t = w->t;
  uint32_t row = kb_local(kb, minus(kb, last, 2)), search = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_get(kb, search));
  expr_id m = now(kb, kb_get(kb, row)), next = kb_add(kb, m, kb_int(kb, 1)), before = minus(kb, m, 1);
  struct element here = matrix_take(t, m, m), r = e_now(kb, e_sub(kb, acc_get(kb, &w->shift[0]), here));
  struct element s = e_now(kb, e_sub(kb, acc_get(kb, &w->shift[1]), here));
  struct element top = e_div(kb, e_sub(kb, e_mul(kb, r, s), acc_get(kb, &w->shift[2])), matrix_get(t, next, m));
  acc_set(kb, &v[0], e_add(kb, top, matrix_get(t, m, next)));
  acc_set(kb, &v[1], e_sub(kb, e_sub(kb, e_sub(kb, matrix_get(t, next, next), here), r), s));
  acc_set(kb, &v[2], matrix_get(t, kb_add(kb, next, kb_int(kb, 1)), next));
  kb_set(kb, search, kb_lt(kb, start, m));
  kb_if(kb, kb_lt(kb, start, m));
  struct element rest = e_add(kb, size_of(kb, acc_get(kb, &v[1])), size_of(kb, acc_get(kb, &v[2])));
  struct element low = size_of(kb, e_mul(kb, matrix_get(t, m, before), rest));
  struct element around = e_add(kb, size_of(kb, matrix_get(t, before, before)), size_of(kb, here));
  around = e_mul(kb, acc_get(kb, &v[0]), e_add(kb, around, size_of(kb, matrix_get(t, next, next))));
  expr_id small = now(kb, e_lt(kb, low, e_mul(kb, epsilon(kb), around)));
  kb_set(kb, search, expr_unary(kb->k, SCALAR_NOT, small));
  kb_set(kb, row, expr_select(kb->k, small, m, before));
  kb_close(kb, 2);
  return now(kb, kb_get(kb, row));
}

/* Chases the bulge down to the last two rows. */
static void step(struct walk *w, expr_id start, expr_id last) {
  struct kb *kb = w->kb;
  const struct matrix *t = w->t;
  struct accumulator v[3] = {acc_begin(kb, num(kb, 0)), acc_begin(kb, num(kb, 0)), acc_begin(kb, num(kb, 0))};
  expr_id m = step_begin(w, start, last, v), one = kb_int(kb, 1), two = kb_int(kb, 2), three = kb_int(kb, 3);
  struct element x[3];
  expr_id k = now(kb, kb_add(kb, m, kb_for(kb, LOOP_SEQ, kb_sub(kb, minus(kb, last, 1), m)))), before = minus(kb, k, 1);
  expr_id first = now(kb, equal(kb, k, m));
  kb_if(kb, expr_unary(kb->k, SCALAR_NOT, first));
  for (int i = 0; i < 3; i++)
    acc_set(kb, &v[i], matrix_get(t, kb_add(kb, k, kb_int(kb, i)), before));
  kb_close(kb, 1);
  for (int i = 0; i < 3; i++)
    x[i] = e_now(kb, acc_get(kb, &v[i]));
  struct bulge b = bulge_of(kb, x, 3);
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, b.multiple, num(kb, 0)).re);
  kb_if(kb, kb_lt(kb, start, k)); /* of the first, the element before it only turns its sign */
  struct element low = matrix_take(t, k, before);
  matrix_put(t, k, before, f_select(&kb->f, real_element(first), f_unary(&kb->f, SCALAR_NEG, low), b.multiple));
  kb_close(kb, 1);
  reflect_all(w, &b, k, kb_add(kb, expr_binary(kb->k, SCALAR_MIN, last, kb_add(kb, k, three)), one));
  kb_close(kb, 2);
  k = now(kb, minus(kb, last, 1));
  before = minus(kb, last, 2);
  x[0] = matrix_take(t, k, before);
  x[1] = matrix_take(t, last, before);
  b = bulge_of(kb, x, 2);
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, b.multiple, num(kb, 0)).re);
  matrix_put(t, k, before, b.multiple);
  reflect_all(w, &b, k, kb_add(kb, last, one));
  kb_close(kb, 1);
  expr_id i = kb_add(kb, kb_add(kb, m, two), kb_for(kb, LOOP_SEQ, kb_sub(kb, before, minus(kb, m, 1))));
  matrix_put(t, i, minus(kb, i, 2), num(kb, 0));
  kb_if(kb, kb_lt(kb, kb_add(kb, m, two), i));
  matrix_put(t, i, minus(kb, i, 3), num(kb, 0));
  kb_close(kb, 2);
}

/* ---- the whole ---- */

/* The largest absolute value, or 1 where that is nothing; every element is multiplied by it, or divided. */
static struct element largest(struct kb *kb, const struct matrix *t, expr_id n) {
  struct accumulator most = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, n);
  acc_set(kb, &most, larger(kb, acc_get(kb, &most), size_of(kb, matrix_get(t, i, j))));
  kb_close(kb, 2);
  struct element none = real_element(e_lt(kb, acc_get(kb, &most), least(kb)));
  return e_now(kb, f_select(&kb->f, none, num(kb, 1), acc_get(kb, &most)));
}
static void scale(struct kb *kb, const struct matrix *t, expr_id n, enum scalar_op op, struct element by) {
  expr_id i = kb_for(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, n);
  struct element e = e_now(kb, f_binary(&kb->f, op, matrix_get(t, i, j), by));
  matrix_put(t, i, j, e);
  kb_close(kb, 2);
}
static struct element hessenberg_norm(struct kb *kb, const struct matrix *t, expr_id n) {
  struct accumulator sum = acc_begin(kb, num(kb, 0));
  expr_id j = kb_for(kb, LOOP_SEQ, n), rows = expr_binary(kb->k, SCALAR_MIN, n, kb_add(kb, j, kb_int(kb, 2)));
  expr_id i = kb_for(kb, LOOP_SEQ, rows);
  acc_add(kb, &sum, size_of(kb, matrix_get(t, i, j)));
  kb_close(kb, 2);
  return acc_get(kb, &sum);
}

expr_id real_schur_factor(struct kb *kb, const struct matrix *t, const struct matrix *u, expr_id n) {
  struct walk w = {.kb = kb, .t = t, .u = u, .n = n};
  struct element factor = largest(kb, t, n);
  scale(kb, t, n, SCALAR_DIV, factor);
  schur_hessenberg(kb, t, u, n);
  expr_id zero = kb_int(kb, 0), most = kb_mul(kb, n, kb_int(kb, STEPS_FOR_EACH));
  w.nothing = e_now(kb, larger(kb, e_mul(kb, hessenberg_norm(kb, t, n), square(kb, epsilon(kb))), least(kb)));
  w.last = kb_local(kb, minus(kb, n, 1));
  w.tries = kb_local(kb, zero);
  w.total = kb_local(kb, zero);
  w.moved = acc_begin(kb, num(kb, 0));
  for (int i = 0; i < 3; i++)
    w.shift[i] = acc_begin(kb, num(kb, 0));
  kb_while(kb, kb_and(kb, expr_binary(kb->k, SCALAR_LE, zero, kb_get(kb, w.last)), kb_lt(kb, kb_get(kb, w.total), most)));
  expr_id last = now(kb, kb_get(kb, w.last)), start = active_start(&w, last);
  kb_if(kb, equal(kb, start, last));
  take_one(&w, last);
  kb_else(kb);
  kb_if(kb, equal(kb, start, minus(kb, last, 1)));
  take_two(&w, last);
  kb_else(kb);
  choose_shifts(&w, last);
  step(&w, start, last);
  kb_close(kb, 3);
  scale(kb, t, n, SCALAR_MUL, factor);
  return kb_lt(kb, kb_get(kb, w.last), zero);
}
