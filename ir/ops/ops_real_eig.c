/* ops_real_eig.c: eigenvalues and vectors of real matrices: the real Schur form A = U T U', T with 2 x 2 blocks on its diagonal for pairs of
 * complex eigenvalues, by Francis' double steps (Golub and Van Loan, 7.5). Steps and tests are Eigen's, in the precision of the op, so that
 * order and phases are too: the positive imaginary part comes first; the last element of a vector, in Schur's basis, is 1 or i. */
#include <float.h>
#include <math.h>

#include "ir/ops/schur.h"

#define STEPS_FOR_EACH 40
#define OTHER_SHIFT 16 /* steps at the same place from one unusual shift to the next; the first step has one too */

struct schur {
  struct kb *kb;
  struct matrix t, u;
  expr_id n;
  struct accumulator moved; /* what was subtracted from the diagonal of the part that is not done */
};

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, dtype_real(kb->f.dtype), v); }
static struct element size_of(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_ABS, e); }
static struct element negative(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_NEG, e); }
static expr_id less(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_LT, a, b).re; }
static bool is_double(const struct kb *kb) { return dtype_real(kb->f.dtype) == DTYPE_DOUBLE; }
static double epsilon(const struct kb *kb) { return is_double(kb) ? DBL_EPSILON : FLT_EPSILON; }
static double smallest(const struct kb *kb) { return is_double(kb) ? DBL_MIN : FLT_MIN; }
static struct element at(const struct schur *s, expr_id i, expr_id j) { return matrix_take(&s->t, i, j); }
static expr_id plus(struct kb *kb, expr_id a, int by) { return kb_add(kb, a, kb_int(kb, by)); }
static expr_id keep(struct kb *kb, expr_id e) { return kb_get(kb, kb_local(kb, e)); }

/* ---- reflections of three (or two) neighbouring rows or columns ---- */

struct small_reflection {
  struct element e1, e2, tau, multiple;
  expr_id k, three;
};
static struct small_reflection reflection_of(struct kb *kb, const struct element v[3], expr_id k, expr_id three) {
  struct formula *f = &kb->f;
  struct element zero = num(kb, 0), tail = e_now(kb, e_add(kb, e_mul(kb, v[1], v[1]), e_mul(kb, v[2], v[2])));
  struct element none = real_element(f_binary(f, SCALAR_LE, tail, num(kb, smallest(kb))).re);
  struct element length = e_now(kb, f_unary(f, SCALAR_SQRT, e_add(kb, e_mul(kb, v[0], v[0]), tail)));
  struct element b = e_now(kb, f_select(f, real_element(less(kb, v[0], zero)), length, negative(kb, length)));
  struct element divisor = e_now(kb, f_select(f, none, num(kb, 1), e_sub(kb, v[0], b)));
  struct element safe = f_select(f, none, num(kb, 1), b);
  return (struct small_reflection){.e1 = e_now(kb, f_select(f, none, zero, e_div(kb, v[1], divisor))),
                                   .e2 = e_now(kb, f_select(f, none, zero, e_div(kb, v[2], divisor))),
                                   .tau = e_now(kb, f_select(f, none, zero, e_div(kb, e_sub(kb, b, v[0]), safe))),
                                   .multiple = e_now(kb, f_select(f, none, v[0], b)), .k = k, .three = three};
}
/* rows: of columns from .. end - 1; else columns, of those rows */
static void reflect(const struct schur *s, const struct matrix *m, const struct small_reflection *r, bool rows, expr_id from, expr_id end) {
  struct kb *kb = s->kb;
  expr_id j = kb_add(kb, from, kb_for(kb, LOOP_SEQ, kb_sub(kb, end, from))), place[3];
  struct element x[3];
  for (int i = 0; i < 3; i++) {
    place[i] = i < 2 ? plus(kb, r->k, i) : kb_clamp(kb, plus(kb, r->k, 2), s->n);
    x[i] = rows ? matrix_take(m, place[i], j) : matrix_take(m, j, place[i]);
  }
  struct element third = e_mul(kb, r->e2, x[2]), sum = e_add(kb, e_add(kb, x[0], e_mul(kb, r->e1, x[1])), third);
  struct element part = e_now(kb, e_mul(kb, r->tau, sum)), by[3] = {num(kb, 1), r->e1, r->e2};
  for (int i = 0; i < 3; i++) {
    if (i == 2)
      kb_if(kb, r->three);
    matrix_put(m, rows ? place[i] : j, rows ? j : place[i], e_sub(kb, x[i], e_mul(kb, by[i], part)));
  }
  kb_close(kb, 2);
}

/* ---- Francis' step on rows first .. last ---- */

struct shift {
  struct element a, b, c;
};
/* Moves the diagonal down to row `last` by a shift. */
static void move_diagonal(const struct schur *s, expr_id last, struct element by) {
  struct kb *kb = s->kb;
  acc_add(kb, &s->moved, by);
  expr_id i = kb_for(kb, LOOP_SEQ, plus(kb, last, 1));
  struct element e = e_now(kb, e_sub(kb, matrix_get(&s->t, i, i), by));
  matrix_put(&s->t, i, i, e);
  kb_close(kb, 1);
}

/* The usual shifts are the eigenvalues of the last 2 x 2 block; unusual ones are, by turns, MATLAB's and Wilkinson's. */
static struct shift shift_of(const struct schur *s, expr_id last, expr_id tries) {
  struct kb *kb = s->kb;
  struct formula *f = &kb->f;
  expr_id before = plus(kb, last, -1), zero = kb_int(kb, 0);
  struct element corner = at(s, last, last), other = at(s, before, before), below = at(s, last, before), half = num(kb, 0.5);
  struct accumulator a = acc_begin(kb, corner), b = acc_begin(kb, other), c = acc_begin(kb, e_mul(kb, below, at(s, before, last)));
  struct element middle = e_now(kb, e_mul(kb, e_sub(kb, other, corner), half));
  kb_if(kb, expr_binary(kb->k, SCALAR_EQ, kb_mod(kb, tries, kb_int(kb, OTHER_SHIFT)), zero));
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, kb_mod(kb, tries, kb_int(kb, 2 * OTHER_SHIFT)), zero));
  struct element above = at(s, before, kb_clamp(kb, plus(kb, last, -2), s->n));
  struct element size = e_now(kb, e_add(kb, size_of(kb, below), size_of(kb, above)));
  move_diagonal(s, last, corner);
  acc_set(kb, &a, e_mul(kb, num(kb, 0.75), size));
  acc_set(kb, &b, e_mul(kb, num(kb, 0.75), size));
  acc_set(kb, &c, e_mul(kb, num(kb, -0.4375), e_mul(kb, size, size)));
  kb_else(kb);
  struct element square = e_now(kb, e_add(kb, e_mul(kb, middle, middle), acc_get(kb, &c)));
  kb_if(kb, less(kb, num(kb, 0), square));
  struct element root = f_unary(f, SCALAR_SQRT, square), turned = real_element(less(kb, other, corner));
  struct element distance = e_add(kb, f_select(f, turned, negative(kb, root), root), middle);
  struct element by = e_now(kb, e_sub(kb, corner, e_div(kb, acc_get(kb, &c), distance)));
  move_diagonal(s, last, by);
  acc_set(kb, &a, num(kb, 0.964));
  acc_set(kb, &b, num(kb, 0.964));
  acc_set(kb, &c, num(kb, 0.964));
  kb_close(kb, 3);
  return (struct shift){acc_get(kb, &a), acc_get(kb, &b), acc_get(kb, &c)};
}

/* Where the step may start: two small subdiagonal elements in a row; its first vector in v. */
static expr_id find_start(const struct schur *s, expr_id first, expr_id last, const struct shift *by, struct accumulator v[3]) {
  struct kb *kb = s->kb;
  uint32_t m = kb_local(kb, plus(kb, last, -2)), more = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_get(kb, more));
  expr_id here = keep(kb, kb_get(kb, m)), next = plus(kb, here, 1), before = kb_clamp(kb, plus(kb, here, -1), s->n);
  struct element d = at(s, here, here), p = e_now(kb, e_sub(kb, by->a, d)), q = e_now(kb, e_sub(kb, by->b, d));
  struct element top = e_div(kb, e_sub(kb, e_mul(kb, p, q), by->c), at(s, next, here));
  acc_set(kb, &v[0], e_add(kb, top, at(s, here, next)));
  acc_set(kb, &v[1], e_sub(kb, e_sub(kb, e_sub(kb, at(s, next, next), d), p), q));
  acc_set(kb, &v[2], at(s, plus(kb, here, 2), next));
  struct element left = e_mul(kb, at(s, here, before), e_add(kb, size_of(kb, acc_get(kb, &v[1])), size_of(kb, acc_get(kb, &v[2]))));
  struct element around = e_add(kb, e_add(kb, size_of(kb, at(s, before, before)), size_of(kb, d)), size_of(kb, at(s, next, next)));
  struct element right = e_mul(kb, num(kb, epsilon(kb)), e_mul(kb, acc_get(kb, &v[0]), around));
  expr_id stop = expr_binary(kb->k, SCALAR_OR, expr_binary(kb->k, SCALAR_EQ, here, first), less(kb, size_of(kb, left), right));
  kb_set(kb, more, expr_unary(kb->k, SCALAR_NOT, stop));
  kb_if(kb, kb_get(kb, more));
  kb_set(kb, m, plus(kb, here, -1));
  kb_close(kb, 2);
  return keep(kb, kb_get(kb, m));
}

static void francis_step(const struct schur *s, expr_id first, expr_id last, const struct shift *by) {
  struct kb *kb = s->kb;
  struct accumulator v[3];
  for (int i = 0; i < 3; i++)
    v[i] = acc_begin(kb, num(kb, 0));
  expr_id start = find_start(s, first, last, by, v), k = keep(kb, kb_add(kb, start, kb_for(kb, LOOP_SEQ, kb_sub(kb, last, start))));
  expr_id begins = keep(kb, expr_binary(kb->k, SCALAR_EQ, k, start)), three = keep(kb, kb_lt(kb, plus(kb, k, 1), last)), before = kb_clamp(kb, plus(kb, k, -1), s->n);
  struct element x[3], zero = num(kb, 0);
  for (int i = 0; i < 3; i++) {
    struct element below = at(s, i < 2 ? plus(kb, k, i) : kb_clamp(kb, plus(kb, k, 2), s->n), before);
    if (i == 2)
      below = f_select(&kb->f, real_element(three), below, zero);
    x[i] = e_now(kb, f_select(&kb->f, real_element(begins), acc_get(kb, &v[i]), below));
  }
  struct small_reflection r = reflection_of(kb, x, k, three);
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, r.multiple, zero).re);
  struct element kept = at(s, k, before);
  kb_if(kb, begins);
  kb_if(kb, kb_lt(kb, first, k));
  matrix_put(&s->t, k, before, negative(kb, kept));
  kb_close(kb, 1);
  kb_else(kb);
  matrix_put(&s->t, k, before, r.multiple);
  kb_close(kb, 1);
  expr_id reach = plus(kb, expr_binary(kb->k, SCALAR_MIN, last, plus(kb, k, 3)), 1);
  reflect(s, &s->t, &r, true, k, s->n);
  reflect(s, &s->t, &r, false, kb_int(kb, 0), reach);
  reflect(s, &s->u, &r, false, kb_int(kb, 0), s->n);
  kb_close(kb, 2);
  expr_id i = kb_add(kb, plus(kb, start, 2), kb_for(kb, LOOP_SEQ, kb_sub(kb, plus(kb, last, -1), start)));
  matrix_put(&s->t, i, plus(kb, i, -2), zero);
  kb_if(kb, kb_lt(kb, plus(kb, start, 2), i));
  matrix_put(&s->t, i, kb_clamp(kb, plus(kb, i, -3), s->n), zero);
  kb_close(kb, 2);
}

/* ---- the whole form ---- */

static void restore_diagonal(const struct schur *s, expr_id i) {
  struct kb *kb = s->kb;
  matrix_put(&s->t, i, i, e_now(kb, e_add(kb, matrix_get(&s->t, i, i), acc_get(kb, &s->moved))));
}

/* A 2 x 2 block that is left at rows last - 1 and last: with real eigenvalues it becomes triangular. */
static void split_block(const struct schur *s, expr_id last) {
  struct kb *kb = s->kb;
  struct formula *f = &kb->f;
  expr_id k = plus(kb, last, -1);
  struct element below = at(s, last, k), p = e_now(kb, e_mul(kb, num(kb, 0.5), e_sub(kb, at(s, k, k), at(s, last, last))));
  struct element q = e_now(kb, e_add(kb, e_mul(kb, p, p), e_mul(kb, below, at(s, k, last)))), zero = num(kb, 0);
  restore_diagonal(s, last);
  restore_diagonal(s, k);
  kb_if(kb, f_binary(f, SCALAR_LE, zero, q).re);
  struct element z = e_now(kb, f_unary(f, SCALAR_SQRT, q)), x = f_select(f, real_element(less(kb, p, zero)), e_sub(kb, p, z), e_add(kb, p, z));
  x = e_now(kb, x);
  struct element h = e_now(kb, f_norm(f, (struct element){x.re, below.re})), c = e_now(kb, e_div(kb, x, h)), n = e_now(kb, e_div(kb, below, h));
  expr_id j = kb_add(kb, k, kb_for(kb, LOOP_SEQ, kb_sub(kb, s->n, k)));
  struct element a = at(s, k, j), b = at(s, last, j);
  matrix_put(&s->t, k, j, e_add(kb, e_mul(kb, c, a), e_mul(kb, n, b)));
  matrix_put(&s->t, last, j, e_sub(kb, e_mul(kb, c, b), e_mul(kb, n, a)));
  kb_close(kb, 1);
  const struct matrix *both[] = {&s->t, &s->u};
  for (int i = 0; i < 2; i++) {
    j = kb_for(kb, LOOP_SEQ, i ? s->n : plus(kb, last, 1));
    a = matrix_take(both[i], j, k);
    b = matrix_take(both[i], j, last);
    matrix_put(both[i], j, k, e_add(kb, e_mul(kb, c, a), e_mul(kb, n, b)));
    matrix_put(both[i], j, last, e_sub(kb, e_mul(kb, c, b), e_mul(kb, n, a)));
    kb_close(kb, 1);
  }
  matrix_put(&s->t, last, k, zero);
  kb_close(kb, 1);
  kb_if(kb, kb_lt(kb, kb_int(kb, 0), k));
  matrix_put(&s->t, k, kb_clamp(kb, plus(kb, k, -1), s->n), zero);
  kb_close(kb, 1);
}

/* The first row of the part that ends at `last`: above it is an element as good as 0. */
static expr_id part_start(const struct schur *s, expr_id last, struct element nothing) {
  struct kb *kb = s->kb;
  uint32_t start = kb_local(kb, last), more = kb_local(kb, kb_lt(kb, kb_int(kb, 0), last));
  kb_while(kb, kb_get(kb, more));
  expr_id here = keep(kb, kb_get(kb, start)), before = plus(kb, here, -1);
  struct element around = e_mul(kb, e_add(kb, size_of(kb, at(s, before, before)), size_of(kb, at(s, here, here))), num(kb, epsilon(kb)));
  expr_id small = f_binary(&kb->f, SCALAR_LE, size_of(kb, at(s, here, before)), f_binary(&kb->f, SCALAR_MAX, around, nothing)).re;
  kb_if(kb, small);
  kb_set(kb, more, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_else(kb);
  kb_set(kb, start, before);
  kb_set(kb, more, kb_lt(kb, kb_int(kb, 0), before));
  kb_close(kb, 2);
  return keep(kb, kb_get(kb, start));
}

/* Gives whether it came to an end. */
static expr_id real_schur(const struct schur *s, struct element nothing) {
  struct kb *kb = s->kb;
  expr_id zero = kb_int(kb, 0), most = kb_mul(kb, s->n, kb_int(kb, STEPS_FOR_EACH));
  uint32_t end = kb_local(kb, plus(kb, s->n, -1)), tries = kb_local(kb, zero), total = kb_local(kb, zero);
  kb_while(kb, kb_and(kb, kb_lt(kb, kb_int(kb, -1), kb_get(kb, end)), kb_lt(kb, kb_get(kb, total), most)));
  expr_id last = keep(kb, kb_get(kb, end)), first = part_start(s, last, nothing), before = plus(kb, last, -1);
  kb_if(kb, expr_binary(kb->k, SCALAR_EQ, first, last));
  restore_diagonal(s, last);
  kb_if(kb, kb_lt(kb, zero, last));
  matrix_put(&s->t, last, kb_clamp(kb, before, s->n), num(kb, 0));
  kb_close(kb, 1);
  kb_set(kb, end, before);
  kb_set(kb, tries, zero);
  kb_else(kb);
  kb_if(kb, expr_binary(kb->k, SCALAR_EQ, first, before));
  split_block(s, last);
  kb_set(kb, end, plus(kb, last, -2));
  kb_set(kb, tries, zero);
  kb_else(kb);
  struct shift by = shift_of(s, last, kb_get(kb, tries));
  kb_set(kb, tries, plus(kb, kb_get(kb, tries), 1));
  kb_set(kb, total, plus(kb, kb_get(kb, total), 1));
  francis_step(s, first, last, &by);
  kb_close(kb, 3);
  return kb_lt(kb, kb_get(kb, end), zero);
}

/* ---- vectors of T, in the complex dtype ---- */

struct vectors {
  struct kb *kb;
  const struct schur *s;
  struct matrix x;
  expr_id column, last;      /* where the vector is stored; the last row of its block */
  struct element value, tiny;
};

/* Row i of T times what is known of the vector: its elements behind `from`. */
static struct element row_sum(const struct vectors *v, expr_id i, expr_id from) {
  struct kb *kb = v->kb;
  struct accumulator sum = acc_begin(kb, f_const_as(&kb->f, kb->f.dtype, 0));
  expr_id next = plus(kb, from, 1), j = kb_add(kb, next, kb_for(kb, LOOP_SEQ, kb_sub(kb, v->last, from)));
  acc_add(kb, &sum, e_mul(kb, matrix_get(&v->s->t, i, j), matrix_get(&v->x, j, v->column)));
  kb_close(kb, 1);
  return acc_get(kb, &sum);
}
static struct element not_zero(const struct vectors *v, struct element e) {
  struct formula *f = &v->kb->f;
  struct element zero = f_const_as(f, f->dtype, 0);
  return e_now(v->kb, f_select(f, f_binary(f, SCALAR_EQ, e, zero), f_cast(f, f->dtype, v->tiny), e));
}

/* Upwards from row `above`, a block at a time. */
static void substitute_up(const struct vectors *v, expr_id above) {
  struct kb *kb = v->kb;
  const struct schur *s = v->s;
  uint32_t row = kb_local(kb, above);
  kb_while(kb, kb_lt(kb, kb_int(kb, -1), kb_get(kb, row)));
  expr_id i = keep(kb, kb_get(kb, row)), h = keep(kb, kb_clamp(kb, plus(kb, i, -1), s->n));
  struct element c = at(s, i, h), d = e_now(kb, e_sub(kb, at(s, i, i), v->value)), low = row_sum(v, i, i);
  expr_id pair = kb_and(kb, kb_lt(kb, h, i), f_binary(&kb->f, SCALAR_NE, c, num(kb, 0)).re);
  kb_if(kb, pair);
  struct element a = e_now(kb, e_sub(kb, at(s, h, h), v->value)), b = at(s, h, i), high = row_sum(v, h, i);
  struct element det = not_zero(v, e_sub(kb, e_mul(kb, a, d), e_mul(kb, b, c)));
  matrix_put(&v->x, h, v->column, e_now(kb, e_div(kb, e_sub(kb, e_mul(kb, b, low), e_mul(kb, d, high)), det)));
  matrix_put(&v->x, i, v->column, e_now(kb, e_div(kb, e_sub(kb, e_mul(kb, c, high), e_mul(kb, a, low)), det)));
  kb_set(kb, row, plus(kb, i, -2));
  kb_else(kb);
  matrix_put(&v->x, i, v->column, e_now(kb, e_div(kb, negative(kb, low), not_zero(v, d))));
  kb_set(kb, row, plus(kb, i, -1));
  kb_close(kb, 2);
}

/* The values of block k: one, or two that are conjugate. */
static void solve_blocks(struct vectors *v, uint32_t values, const expr_id *batch, int batch_rank, struct element scale) {
  struct kb *kb = v->kb;
  struct formula *f = &kb->f;
  const struct schur *s = v->s;
  expr_id place[LIMIT_RANK];
  memcpy(place, batch, sizeof *place * (size_t)batch_rank);
  uint32_t start = kb_local(kb, kb_int(kb, 0));
  kb_while(kb, kb_lt(kb, kb_get(kb, start), s->n));
  expr_id k = keep(kb, kb_get(kb, start)), next = keep(kb, kb_clamp(kb, plus(kb, k, 1), s->n));
  struct element below = at(s, next, k), d = at(s, next, next), zero = num(kb, 0);
  struct element p = e_now(kb, e_mul(kb, num(kb, 0.5), e_sub(kb, at(s, k, k), d)));
  struct element root = f_unary(f, SCALAR_SQRT, size_of(kb, e_add(kb, e_mul(kb, p, p), e_mul(kb, below, at(s, k, next)))));
  expr_id pair = keep(kb, kb_and(kb, kb_lt(kb, k, next), f_binary(f, SCALAR_NE, below, zero).re));
  struct element im = e_now(kb, f_select(f, real_element(pair), root, zero));
  struct element re = e_now(kb, f_select(f, real_element(pair), e_add(kb, d, p), at(s, k, k)));
  v->value = (struct element){re.re, im.re};
  v->column = k;
  v->last = keep(kb, expr_select(kb->k, pair, next, k));
  place[batch_rank] = k;
  kb_store(kb, values, place, e_mul(kb, v->value, scale));
  struct element i_unit = {zero.re, num(kb, 1).re}, unit = f_select(f, real_element(pair), i_unit, f_cast(f, f->dtype, num(kb, 1)));
  matrix_put(&v->x, v->last, k, unit);
  kb_if(kb, pair);
  struct element upper = negative(kb, e_mul(kb, e_sub(kb, d, v->value), i_unit));
  matrix_put(&v->x, k, k, e_now(kb, e_div(kb, upper, below)));
  kb_close(kb, 1);
  substitute_up(v, plus(kb, k, -1));
  kb_if(kb, pair);
  place[batch_rank] = next;
  kb_store(kb, values, place, e_mul(kb, f_conj(f, v->value), scale));
  expr_id i = kb_for(kb, LOOP_SEQ, s->n);
  matrix_put(&v->x, i, next, f_conj(f, matrix_take(&v->x, i, k)));
  kb_close(kb, 2);
  kb_set(kb, start, plus(kb, v->last, 1));
  kb_close(kb, 1);
}

/* ---- the op ---- */

/* The matrix over its largest element, which it gives; x becomes 0. */
static struct element copy_scaled(const struct schur *s, const struct matrix *from, const struct matrix *x) {
  struct kb *kb = s->kb;
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, s->n), j = kb_for(kb, LOOP_SEQ, s->n);
  acc_set(kb, &largest, f_binary(&kb->f, SCALAR_MAX, acc_get(kb, &largest), size_of(kb, matrix_get(from, i, j))));
  kb_close(kb, 2);
  struct element top = acc_get(kb, &largest), none = real_element(less(kb, top, num(kb, smallest(kb))));
  struct element scale = e_now(kb, f_select(&kb->f, none, num(kb, 1), top));
  i = kb_for(kb, LOOP_SEQ, s->n);
  j = kb_for(kb, LOOP_SEQ, s->n);
  matrix_put(&s->t, i, j, e_div(kb, matrix_get(from, i, j), scale));
  matrix_put(x, i, j, num(kb, 0));
  kb_close(kb, 2);
  return scale;
}
static struct element sum_of_sizes(const struct schur *s) {
  struct kb *kb = s->kb;
  struct accumulator sum = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, s->n), j = kb_for(kb, LOOP_SEQ, s->n);
  acc_add(kb, &sum, size_of(kb, matrix_get(&s->t, i, j)));
  kb_close(kb, 2);
  return acc_get(kb, &sum);
}

status real_eig(struct op_call *c, value_id in, const struct flow_value *x, value_id *values, value_id *vectors) {
  enum dtype wide = op_output_dtype(c, 0), real = x->dtype;
  struct kb kb;
  kb_begin(&kb, c, real);
  uint32_t a = kb_in(&kb, in), t = kb_out(&kb, real, x->rank, x->dims), u = kb_out(&kb, real, x->rank, x->dims);
  uint32_t w = kb_out(&kb, wide, x->rank, x->dims), v = kb_out(&kb, wide, x->rank, x->dims), e = kb_out(&kb, wide, x->rank - 1, x->dims);
  expr_id batch[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x->rank - 2, x->dims, batch);
  struct schur s = {.kb = &kb, .t = matrix_of(&kb, t, batch), .u = matrix_of(&kb, u, batch), .n = kb_dim(&kb, x->dims[x->rank - 1])};
  struct matrix from = matrix_of(&kb, a, batch), full = matrix_of(&kb, v, batch);
  struct vectors vs = {.kb = &kb, .s = &s, .x = matrix_of(&kb, w, batch)};
  struct element scale = copy_scaled(&s, &from, &vs.x);
  schur_hessenberg(&kb, &s.t, &s.u, s.n);
  struct element norm = e_now(&kb, sum_of_sizes(&s)), eps = num(&kb, epsilon(&kb));
  struct element nothing = f_binary(&kb.f, SCALAR_MAX, e_mul(&kb, norm, e_mul(&kb, eps, eps)), num(&kb, smallest(&kb)));
  expr_id finite = less(&kb, norm, num(&kb, INFINITY));
  const char *text = "Eigen decomposition was not successful. The input might not be valid.";
  s.moved = acc_begin(&kb, num(&kb, 0));
  kb_check(&kb, finite, INVALID_ARGUMENT, text, NO_EXPR, NO_EXPR);
  kb_check(&kb, real_schur(&s, e_now(&kb, nothing)), INVALID_ARGUMENT, text, NO_EXPR, NO_EXPR);
  vs.tiny = e_now(&kb, f_binary(&kb.f, SCALAR_MAX, e_mul(&kb, eps, sum_of_sizes(&s)), num(&kb, smallest(&kb))));
  kb.f.dtype = wide;
  solve_blocks(&vs, e, batch, x->rank - 2, scale);
  schur_vectors(&kb, &s.u, &vs.x, &full, s.n);
  kb_close(&kb, x->rank - 2);
  *values = kb_value(&kb, e);
  *vectors = kb_value(&kb, v);
  return kb_finish(&kb);
}
