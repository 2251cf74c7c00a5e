/* bidiagonal_qr.c: singular values of a bidiagonal matrix: implicit QR steps with the shift that the last 2 x 2 block suggests (Golub, Van
 * Loan: Matrix Computations, 8.6.3), without a shift where the block is singular or the shift is nothing beside it (Demmel, Kahan: Accurate
 * singular values of bidiagonal matrices, 1990): such a step brings a zero on the diagonal down to the end. The formulas are those of
 * LAPACK's xBDSQR. What is a rounding error of the largest element counts as zero. */
#include <float.h>

#include "ir/ops/linalg/bidiagonal.h"

#define LOST 1e-280       /* a square that may have lost digits */
#define STEPS_FOR_EACH 30 /* on the average, before it gives up; it takes about 2 */

struct band {
  struct kb *kb;
  const struct matrix *m;
  const struct sweeps *s;
  struct element limit; /* as good as zero */
  expr_id n;
};

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_DOUBLE, v); }
static struct element size_of(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_ABS, e); }
static struct element root_of(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_SQRT, e); }
static struct element smaller(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_MIN, a, b); }
static struct element larger(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_MAX, a, b); }

static struct element diagonal(const struct band *b, expr_id i) { return matrix_get(b->m, kb_int(b->kb, 0), i); }
static struct element above(const struct band *b, expr_id i) { return matrix_get(b->m, kb_int(b->kb, 1), i); }
static void put_diagonal(const struct band *b, expr_id i, struct element e) { matrix_put(b->m, kb_int(b->kb, 0), i, e); }
static void put_above(const struct band *b, expr_id i, struct element e) { matrix_put(b->m, kb_int(b->kb, 1), i, e); }

/* [c, s; -s, c] with c >= 0 turns (f, g) into (length, 0), which has f's sign; of two whose squares get lost, nothing beside the largest
 * element, g is dropped. */
struct turn {
  struct element c, s, length;
};
static struct turn turn_of(struct kb *kb, struct element f, struct element g) {
  struct element square = e_now(kb, e_add(kb, e_mul(kb, f, f), e_mul(kb, g, g))), one = num(kb, 1);
  struct element lost = real_element(e_lt(kb, square, num(kb, LOST)));
  struct element root = e_now(kb, root_of(kb, square)), negative = real_element(e_lt(kb, f, num(kb, 0)));
  struct element signed_root = f_select(&kb->f, negative, f_unary(&kb->f, SCALAR_NEG, root), root);
  struct element length = e_now(kb, f_select(&kb->f, lost, one, signed_root));
  struct element c = f_select(&kb->f, lost, one, e_div(kb, f, length)), s = f_select(&kb->f, lost, num(kb, 0), e_div(kb, g, length));
  return (struct turn){e_now(kb, c), e_now(kb, s), e_now(kb, f_select(&kb->f, lost, f, length))};
}

/* The smaller singular value of the last 2 x 2 block: with f, h on the diagonal and g above, the two values' sum is |(f + h, g)|, their
 * difference |(f - h, g)|, their product f h. */
static struct element shift_of(const struct band *b, expr_id last) {
  struct kb *kb = b->kb;
  expr_id before = kb_sub(kb, last, kb_int(kb, 1));
  struct element f = e_now(kb, size_of(kb, diagonal(b, before))), h = e_now(kb, size_of(kb, diagonal(b, last)));
  struct element g = e_now(kb, above(b, before)), gg = e_now(kb, e_mul(kb, g, g));
  struct element sum = e_now(kb, e_add(kb, f, h)), difference = e_now(kb, e_sub(kb, f, h));
  struct element both =
    e_add(kb, root_of(kb, e_add(kb, e_mul(kb, sum, sum), gg)), root_of(kb, e_add(kb, e_mul(kb, difference, difference), gg)));
  return e_now(kb, e_div(kb, e_mul(kb, e_mul(kb, num(kb, 2), f), h), both));
}

/* Rows first .. last, with what the shifted first turn makes chased down. */
static void shifted_step(const struct band *b, expr_id first, expr_id last, struct element shift) {
  struct kb *kb = b->kb;
  expr_id one = kb_int(kb, 1);
  struct element top = e_now(kb, diagonal(b, first)), positive = real_element(e_lt(kb, num(kb, 0), top));
  struct element sign = f_select(&kb->f, positive, num(kb, 1), num(kb, -1));
  struct element start = e_mul(kb, e_sub(kb, size_of(kb, top), shift), e_add(kb, sign, e_div(kb, shift, top)));
  struct accumulator f = acc_begin(kb, start), g = acc_begin(kb, above(b, first)), d = acc_begin(kb, top);
  expr_id k = kb_add(kb, first, kb_for(kb, LOOP_SEQ, kb_sub(kb, last, first))), next = kb_add(kb, k, one);
  struct turn right = turn_of(kb, acc_get(kb, &f), acc_get(kb, &g));
  kb_if(kb, kb_lt(kb, first, k));
  put_above(b, kb_sub(kb, k, one), right.length);
  kb_close(kb, 1);
  struct element e = e_now(kb, above(b, k)), here = acc_get(kb, &d), following = e_now(kb, diagonal(b, next));
  struct element on = e_now(kb, e_add(kb, e_mul(kb, right.c, here), e_mul(kb, right.s, e)));
  struct element off = e_now(kb, e_sub(kb, e_mul(kb, right.c, e), e_mul(kb, right.s, here)));
  struct element under = e_now(kb, e_mul(kb, right.c, following));
  struct turn left = turn_of(kb, on, e_now(kb, e_mul(kb, right.s, following)));
  put_diagonal(b, k, left.length);
  acc_set(kb, &f, e_add(kb, e_mul(kb, left.c, off), e_mul(kb, left.s, under)));
  acc_set(kb, &d, e_sub(kb, e_mul(kb, left.c, under), e_mul(kb, left.s, off)));
  kb_if(kb, kb_lt(kb, next, last));
  struct element beyond = e_now(kb, above(b, next));
  acc_set(kb, &g, e_mul(kb, left.s, beyond));
  put_above(b, next, e_mul(kb, left.c, beyond));
  kb_close(kb, 1);
  sweep_put(b->s, 0, k, left.c, left.s);
  sweep_put(b->s, 1, k, right.c, right.s);
  kb_close(kb, 1);
  put_above(b, kb_sub(kb, last, one), acc_get(kb, &f));
  put_diagonal(b, last, acc_get(kb, &d));
}

static void unshifted_step(const struct band *b, expr_id first, expr_id last) {
  struct kb *kb = b->kb;
  expr_id one = kb_int(kb, 1);
  struct accumulator c = acc_begin(kb, num(kb, 1)), left_c = acc_begin(kb, num(kb, 1)), left_s = acc_begin(kb, num(kb, 0));
  expr_id k = kb_add(kb, first, kb_for(kb, LOOP_SEQ, kb_sub(kb, last, first))), next = kb_add(kb, k, one);
  struct turn right = turn_of(kb, e_now(kb, e_mul(kb, diagonal(b, k), acc_get(kb, &c))), e_now(kb, above(b, k)));
  kb_if(kb, kb_lt(kb, first, k));
  put_above(b, kb_sub(kb, k, one), e_mul(kb, acc_get(kb, &left_s), right.length));
  kb_close(kb, 1);
  struct element on = e_now(kb, e_mul(kb, acc_get(kb, &left_c), right.length));
  struct turn left = turn_of(kb, on, e_now(kb, e_mul(kb, diagonal(b, next), right.s)));
  put_diagonal(b, k, left.length);
  acc_set(kb, &c, right.c);
  acc_set(kb, &left_c, left.c);
  acc_set(kb, &left_s, left.s);
  sweep_put(b->s, 0, k, left.c, left.s);
  sweep_put(b->s, 1, k, right.c, right.s);
  kb_close(kb, 1);
  struct element end = e_now(kb, e_mul(kb, diagonal(b, last), acc_get(kb, &c)));
  put_diagonal(b, last, e_mul(kb, end, acc_get(kb, &left_c)));
  put_above(b, kb_sub(kb, last, one), e_mul(kb, end, acc_get(kb, &left_s)));
}

static void step(const struct band *b, expr_id first, expr_id last, struct element least) {
  struct kb *kb = b->kb;
  sweep_begin(b->s, first, kb_sub(kb, last, first));
  struct element shift = shift_of(b, last), top = e_now(kb, diagonal(b, first)), epsilon = num(kb, DBL_EPSILON);
  struct element worth = e_mul(kb, epsilon, e_mul(kb, top, top));
  expr_id shifts = kb_and(kb, e_lt(kb, b->limit, least), e_lt(kb, worth, e_mul(kb, shift, shift)));
  kb_if(kb, shifts);
  shifted_step(b, first, last, shift);
  kb_else(kb);
  unshifted_step(b, first, last);
  kb_close(kb, 1);
  sweep_end(b->s);
}

/* Moves `start` up to the first row of the block that ends there; gives the block's least element on the diagonal. */
static struct element find_block(const struct band *b, uint32_t start) {
  struct kb *kb = b->kb;
  expr_id one = kb_int(kb, 1);
  uint32_t more = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  struct accumulator least = acc_begin(kb, size_of(kb, diagonal(b, kb_get(kb, start))));
  kb_while(kb, kb_get(kb, more));
  expr_id before = kb_get(kb, kb_local(kb, kb_sub(kb, kb_get(kb, start), one)));
  kb_set(kb, more, e_lt(kb, b->limit, size_of(kb, above(b, before))));
  kb_if(kb, kb_get(kb, more));
  kb_set(kb, start, before);
  acc_set(kb, &least, smaller(kb, acc_get(kb, &least), size_of(kb, diagonal(b, before))));
  kb_set(kb, more, kb_lt(kb, kb_int(kb, 0), before));
  kb_close(kb, 2);
  return acc_get(kb, &least);
}

static void make_diagonal(const struct band *b) {
  struct kb *kb = b->kb;
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1), most = kb_mul(kb, b->n, kb_int(kb, STEPS_FOR_EACH));
  uint32_t end = kb_local(kb, kb_sub(kb, b->n, one)), steps = kb_local(kb, zero);
  kb_while(kb, kb_and(kb, kb_lt(kb, zero, kb_get(kb, end)), kb_lt(kb, kb_get(kb, steps), most)));
  expr_id last = kb_get(kb, kb_local(kb, kb_get(kb, end)));
  uint32_t start = kb_local(kb, last);
  struct element least = find_block(b, start);
  expr_id first = kb_get(kb, kb_local(kb, kb_get(kb, start)));
  kb_if(kb, expr_binary(kb->k, SCALAR_EQ, first, last));
  kb_set(kb, end, kb_sub(kb, last, one));
  kb_else(kb);
  kb_set(kb, steps, kb_add(kb, kb_get(kb, steps), one));
  step(b, first, last, least);
  kb_close(kb, 2);
}

static void sort_values(const struct band *b) {
  struct kb *kb = b->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, b->n);
  uint32_t best = kb_local(kb, i);
  struct accumulator top = acc_begin(kb, diagonal(b, i));
  expr_id next = kb_add(kb, i, kb_int(kb, 1)), j = kb_add(kb, next, kb_for(kb, LOOP_SEQ, kb_sub(kb, b->n, next)));
  struct element value = e_now(kb, diagonal(b, j));
  expr_id better = kb_get(kb, kb_local(kb, e_lt(kb, acc_get(kb, &top), value)));
  kb_set(kb, best, expr_select(kb->k, better, j, kb_get(kb, best)));
  acc_set(kb, &top, f_select(&kb->f, real_element(better), value, acc_get(kb, &top)));
  kb_close(kb, 1);
  expr_id other = kb_get(kb, kb_local(kb, kb_get(kb, best)));
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, i, other));
  put_diagonal(b, other, e_now(kb, diagonal(b, i)));
  put_diagonal(b, i, acc_get(kb, &top));
  sweeps_exchange(b->s, i, other);
  kb_close(kb, 2);
}

/* Signs of the values go to V. */
static void make_positive(const struct band *b) {
  struct kb *kb = b->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, b->n);
  struct element value = e_now(kb, diagonal(b, i));
  kb_if(kb, e_lt(kb, value, num(kb, 0)));
  put_diagonal(b, i, f_unary(&kb->f, SCALAR_NEG, value));
  if (b->s->matrices) {
    const struct matrix *v = &b->s->rotated[1];
    expr_id j = kb_for(kb, LOOP_PAR, b->s->width[1]);
    matrix_put(v, i, j, e_now(kb, f_unary(&kb->f, SCALAR_NEG, matrix_get(v, i, j))));
    kb_close(kb, 1);
  }
  kb_close(kb, 2);
}

void bidiagonal_diagonalize(struct kb *kb, const struct matrix *band, expr_id n, const struct sweeps *s) {
  struct band b = {.kb = kb, .m = band, .s = s, .n = n};
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, n), one = kb_int(kb, 1);
  acc_set(kb, &largest, larger(kb, acc_get(kb, &largest), size_of(kb, diagonal(&b, i))));
  kb_if(kb, kb_lt(kb, kb_add(kb, i, one), n));
  acc_set(kb, &largest, larger(kb, acc_get(kb, &largest), size_of(kb, above(&b, i))));
  kb_close(kb, 2);
  b.limit = e_now(kb, e_mul(kb, num(kb, DBL_EPSILON), acc_get(kb, &largest)));
  make_diagonal(&b);
  if (s->matrices)
    sweeps_apply(s);
  make_positive(&b);
  sort_values(&b);
}
