/* tridiagonal.c: see tridiagonal.h. With v the vector of a reflection P = I - tau v v* and y = A v: P A P* = A - v w* - w v*, where
 * w = conj(tau) y - |tau|^2 (v* y) / 2 v. What is left of A is read and written once in each step: that is taken off each row when the next
 * step's vector is known, for which the row then adds to the next y. */
#include "ir/ops/linalg/tridiagonal.h"

struct step {
  struct kb *kb;
  const struct tridiagonal *t;
  expr_id k, next, now, later; /* now: the row of sums where w of reflection k is; later: where the next one comes */
};

static struct element zero_of(struct kb *kb, const struct matrix *m) {
  return f_const_as(&kb->f, kb->k->buffers.items[m->buffer].dtype, 0);
}
static void clear(const struct step *s, const struct matrix *m, expr_id row, expr_id start) {
  expr_id j = loop_from(s->kb, LOOP_PAR, start, s->t->n);
  matrix_put(m, row, j, zero_of(s->kb, m));
  kb_close(s->kb, 1);
}

/* Element (i, j) less v_i conj(w_j) + w_i conj(v_j). */
static struct element updated(const struct step *s, expr_id i, expr_id j, struct element v, struct element w) {
  struct kb *kb = s->kb;
  const struct tridiagonal *t = s->t;
  struct element e = e_sub(kb, matrix_get(&t->a, i, j), e_mul(kb, v, f_conj(&kb->f, matrix_get(&t->sums, s->now, j))));
  return e_now(kb, e_sub(kb, e, e_mul(kb, w, f_conj(&kb->f, matrix_get(&t->vectors, s->k, j)))));
}

/* Row k, which is final then: its diagonal element, and the adjoint of the rest, which the next reflection turns. */
static void take_row(const struct step *s) {
  struct kb *kb = s->kb;
  const struct tridiagonal *t = s->t;
  struct element v = matrix_take(&t->vectors, s->k, s->k), w = matrix_take(&t->sums, s->now, s->k);
  matrix_put(&t->band, kb_int(kb, 0), s->k, f_real(updated(s, s->k, s->k, v, w)));
  expr_id j = loop_from(s->kb, LOOP_PAR, s->next, s->t->n);
  matrix_put(&t->vectors, s->next, j, f_conj(&kb->f, updated(s, s->k, j, v, w)));
  kb_close(kb, 1);
}

static void update_rows(const struct step *s) {
  struct kb *kb = s->kb;
  const struct tridiagonal *t = s->t;
  expr_id i = loop_from(s->kb, LOOP_SEQ, s->next, s->t->n);
  struct element v = matrix_take(&t->vectors, s->k, i), w = matrix_take(&t->sums, s->now, i), u = matrix_take(&t->vectors, s->next, i);
  expr_id j = loop_from(s->kb, LOOP_PAR, s->next, s->t->n);
  struct element e = updated(s, i, j, v, w), sum = e_add(kb, matrix_get(&t->sums, s->later, j), e_mul(kb, u, f_conj(&kb->f, e)));
  matrix_put(&t->a, i, j, e);
  matrix_put(&t->sums, s->later, j, e_now(kb, sum));
  kb_close(kb, 2);
}

/* y becomes w. */
static void finish_sum(const struct step *s, struct element tau) {
  struct kb *kb = s->kb;
  const struct tridiagonal *t = s->t;
  struct accumulator along = acc_begin(kb, f_real(zero_of(kb, &t->sums)));
  expr_id j = loop_from(s->kb, LOOP_RED, s->next, s->t->n);
  struct element product = e_mul(kb, f_conj(&kb->f, matrix_get(&t->vectors, s->next, j)), matrix_get(&t->sums, s->later, j));
  acc_add(kb, &along, f_real(product));
  kb_close(kb, 1);
  struct element half = f_const_like(&kb->f, acc_get(kb, &along), 0.5), square = f_real(e_mul(kb, tau, f_conj(&kb->f, tau)));
  struct element part = e_now(kb, e_mul(kb, e_mul(kb, square, acc_get(kb, &along)), half));
  j = loop_from(s->kb, LOOP_PAR, s->next, s->t->n);
  struct element e = e_mul(kb, f_conj(&kb->f, tau), matrix_get(&t->sums, s->later, j));
  matrix_put(&t->sums, s->later, j, e_now(kb, e_sub(kb, e, e_mul(kb, matrix_get(&t->vectors, s->next, j), part))));
  kb_close(kb, 1);
}

void tridiagonal_reduce(struct kb *kb, const struct tridiagonal *t) {
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1);
  struct step s = {.kb = kb, .t = t};
  clear(&s, &t->vectors, zero, zero);
  clear(&s, &t->tau, zero, zero);
  clear(&s, &t->sums, zero, zero);
  clear(&s, &t->band, one, zero);
  s.k = kb_for(kb, LOOP_SEQ, t->n);
  s.next = kb_add(kb, s.k, one);
  s.now = e_now(kb, real_element(kb_mod(kb, s.k, kb_int(kb, 2)))).re;
  s.later = kb_sub(kb, one, s.now);
  kb_if(kb, kb_lt(kb, s.next, t->n));
  take_row(&s);
  struct row_reflection r = reflect_row(kb, &t->vectors, s.next, s.next, t->n, true);
  matrix_put(&t->tau, zero, s.next, r.tau);
  matrix_put(&t->band, one, s.k, r.multiple);
  clear(&s, &t->sums, s.later, s.next);
  update_rows(&s);
  finish_sum(&s, r.tau);
  kb_else(kb);
  struct element v = matrix_get(&t->vectors, s.k, s.k), w = matrix_get(&t->sums, s.now, s.k);
  matrix_put(&t->band, zero, s.k, f_real(updated(&s, s.k, s.k, v, w)));
  kb_close(kb, 2);
}

void tridiagonal_collect(struct kb *kb, const struct tridiagonal *t, const struct matrix *q) {
  collect_reflections(kb, &(struct reflections){&t->vectors, &t->tau, kb_int(kb, 0), t->n, t->n}, q, t->n);
}
