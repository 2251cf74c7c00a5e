/* bidiagonal.c: see bidiagonal.h. What is left of M is read and written once in each step: the reflection from the right, that of the next
 * step from the left and the sum that the next one from the right needs meet each column while it is at hand (updates wait until then, as
 * in LAPACK's xLABRD). */
#include "ir/ops/linalg/bidiagonal.h"

/* One step: what waits is the reflection k from the right, M's columns j become M_j - conj(tau u_j) y with y the sum in row `now`. */
struct step {
  struct kb *kb;
  const struct bidiagonal *b;
  expr_id k, next, now, later; /* now, later: rows of the sums */
  struct element tau;          /* from the right */
};
/* conj(tau u_j) */
static struct element waiting(const struct step *s, expr_id j) {
  return e_now(s->kb, f_conj(&s->kb->f, e_mul(s->kb, s->tau, matrix_get(&s->b->right, s->k, j))));
}

static struct row_reflection reflect_first(const struct step *s) {
  struct kb *kb = s->kb;
  const struct bidiagonal *b = s->b;
  struct element part = waiting(s, s->k);
  expr_id i = loop_from(kb, LOOP_PAR, s->k, b->m);
  struct element e = e_sub(kb, matrix_get(&b->columns, s->k, i), e_mul(kb, part, matrix_get(&b->sums, s->now, i)));
  matrix_put(&b->columns, s->k, i, e_now(kb, e));
  kb_close(kb, 1);
  struct row_reflection r = reflect_row(kb, &b->columns, s->k, s->k, b->m, true);
  matrix_put(&b->tau, kb_int(kb, 0), s->k, r.tau);
  matrix_put(&b->band, kb_int(kb, 0), s->k, f_cast(&kb->f, DTYPE_DOUBLE, r.multiple));
  return r;
}

/* The product of the first column's vector, conjugated, with a row. */
static struct element along(const struct step *s, const struct matrix *m, expr_id row) {
  struct kb *kb = s->kb;
  struct accumulator sum = acc_begin(kb, f_const_as(&kb->f, kb->k->buffers.items[m->buffer].dtype, 0));
  expr_id i = loop_from(kb, LOOP_RED, s->k, s->b->m);
  acc_add(kb, &sum, e_mul(kb, f_conj(&kb->f, matrix_get(&s->b->columns, s->k, i)), matrix_get(m, row, i)));
  kb_close(kb, 1);
  return acc_get(kb, &sum);
}

/* Both reflections of column j. Its element k, conjugated, is one of the next vector from the right, and what it is worth in the sum. */
static void reflect_other(const struct step *s, struct element tau, struct element sum_along, expr_id j) {
  struct kb *kb = s->kb;
  const struct bidiagonal *b = s->b;
  struct element part = waiting(s, j), product = e_sub(kb, along(s, &b->columns, j), e_mul(kb, part, sum_along));
  struct element left = e_now(kb, e_mul(kb, tau, product));
  struct element first = e_sub(kb, matrix_get(&b->columns, j, s->k), e_mul(kb, part, matrix_get(&b->sums, s->now, s->k)));
  struct element weight = e_now(kb, f_conj(&kb->f, e_sub(kb, first, left)));
  matrix_put(&b->right, s->next, j, weight);
  expr_id i = loop_from(kb, LOOP_PAR, s->k, b->m);
  struct element e = e_sub(kb, matrix_get(&b->columns, j, i), e_mul(kb, part, matrix_get(&b->sums, s->now, i)));
  e = e_now(kb, e_sub(kb, e, e_mul(kb, left, matrix_get(&b->columns, s->k, i))));
  matrix_put(&b->columns, j, i, e);
  matrix_put(&b->sums, s->later, i, e_now(kb, e_add(kb, matrix_get(&b->sums, s->later, i), e_mul(kb, weight, e))));
  kb_close(kb, 1);
}

/* The sum had the row as it was; now it gets the reflection's vector: (1, tail) = (row - multiple * first axis) / divisor. */
static void reflect_across(const struct step *s) {
  struct kb *kb = s->kb;
  const struct bidiagonal *b = s->b;
  struct row_reflection r = reflect_row(kb, &b->right, s->next, s->next, b->n, true);
  matrix_put(&b->tau, kb_int(kb, 1), s->next, r.tau);
  matrix_put(&b->band, kb_int(kb, 1), s->k, f_cast(&kb->f, DTYPE_DOUBLE, r.multiple));
  expr_id i = loop_from(kb, LOOP_PAR, s->next, b->m);
  struct element e = e_sub(kb, matrix_get(&b->sums, s->later, i), e_mul(kb, matrix_get(&b->columns, s->next, i), r.multiple));
  matrix_put(&b->sums, s->later, i, e_now(kb, e_div(kb, e, r.divisor)));
  kb_close(kb, 1);
}

static void clear(struct kb *kb, const struct matrix *m, expr_id row, expr_id count) {
  expr_id i = kb_for(kb, LOOP_PAR, count);
  matrix_put(m, row, i, f_const_as(&kb->f, kb->k->buffers.items[m->buffer].dtype, 0));
  kb_close(kb, 1);
}

void bidiagonal_reduce(struct kb *kb, const struct bidiagonal *b) {
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1);
  clear(kb, &b->right, zero, b->n);
  clear(kb, &b->tau, one, b->n);
  clear(kb, &b->sums, zero, b->m);
  expr_id k = kb_for(kb, LOOP_SEQ, b->n), now = e_now(kb, real_element(kb_mod(kb, k, kb_int(kb, 2)))).re;
  struct step s = {.kb = kb, .b = b, .k = k, .next = kb_add(kb, k, one), .now = now, .later = kb_sub(kb, one, now)};
  s.tau = matrix_take(&b->tau, one, k);
  struct row_reflection r = reflect_first(&s);
  struct element sum_along = along(&s, &b->sums, s.now);
  clear(kb, &b->sums, s.later, b->m);
  reflect_other(&s, r.tau, sum_along, loop_from(kb, LOOP_SEQ, s.next, b->n));
  kb_close(kb, 1);
  kb_if(kb, kb_lt(kb, s.next, b->n));
  reflect_across(&s);
  kb_close(kb, 2);
}

void bidiagonal_left(struct kb *kb, const struct bidiagonal *b, const struct matrix *u, expr_id rows) {
  collect_reflections(kb, &(struct reflections){&b->columns, &b->tau, kb_int(kb, 0), b->n, b->m}, u, rows);
}
void bidiagonal_right(struct kb *kb, const struct bidiagonal *b, const struct matrix *v) {
  collect_reflections(kb, &(struct reflections){&b->right, &b->tau, kb_int(kb, 1), b->n, b->n}, v, b->n);
}
