/* householder.c: see householder.h. */
#include "ir/ops/linalg/householder.h"

#include <float.h>

static expr_id less(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_LT, a, b).re; }

static struct element square_of(struct kb *kb, struct element e) { return f_real(e_mul(kb, e, f_conj(&kb->f, e))); }

/* Opens a loop over the rows behind the first; closed by the caller. */
static expr_id tail_loop_of(struct kb *kb, enum loop_kind kind, expr_id start, expr_id count) {
  expr_id next = kb_add(kb, start, kb_int(kb, 1));
  return kb_add(kb, next, kb_for(kb, kind, kb_sub(kb, count, next)));
}
static expr_id tail_loop(struct kb *kb, expr_id start, expr_id count) { return tail_loop_of(kb, LOOP_SEQ, start, count); }

struct reflection reflect_column(struct kb *kb, const struct matrix *m, expr_id column, expr_id start, expr_id count) {
  enum dtype dtype = kb->k->buffers.items[m->buffer].dtype, real = dtype_real(dtype);
  struct element zero = f_const_as(&kb->f, real, 0), tiny = f_const_as(&kb->f, real, real == DTYPE_DOUBLE ? DBL_MIN : FLT_MIN);
  struct accumulator tail = acc_begin(kb, zero);
  expr_id i = tail_loop(kb, start, count);
  acc_add(kb, &tail, square_of(kb, matrix_get(m, i, column)));
  kb_close(kb, 1);
  struct element first = matrix_take(m, start, column);
  struct accumulator tau = acc_begin(kb, f_const_as(&kb->f, dtype, 0)), multiple = acc_begin(kb, f_real(first));
  expr_id needed = less(kb, tiny, acc_get(kb, &tail));
  if (dtype_is_complex(dtype)) {
    struct element im = f_imag(&kb->f, first);
    needed = expr_binary(kb->k, SCALAR_OR, needed, less(kb, tiny, e_mul(kb, im, im)));
  }
  kb_if(kb, needed);
  struct element length = e_now(kb, f_unary(&kb->f, SCALAR_SQRT, e_add(kb, square_of(kb, first), acc_get(kb, &tail))));
  struct element negative = real_element(less(kb, f_real(first), zero));
  acc_set(kb, &multiple, f_select(&kb->f, negative, length, f_unary(&kb->f, SCALAR_NEG, length)));
  struct element b = acc_get(kb, &multiple), divisor = e_now(kb, e_sub(kb, first, b));
  i = tail_loop(kb, start, count);
  struct element e = e_now(kb, e_div(kb, matrix_get(m, i, column), divisor));
  matrix_put(m, i, column, e);
  kb_close(kb, 1);
  acc_set(kb, &tau, f_conj(&kb->f, e_div(kb, e_sub(kb, b, first), b)));
  kb_else(kb);
  i = tail_loop(kb, start, count);
  matrix_put(m, i, column, f_const_as(&kb->f, dtype, 0));
  kb_close(kb, 2);
  matrix_put(m, start, column, f_cast(&kb->f, dtype, acc_get(kb, &multiple)));
  return (struct reflection){m, column, start, count, acc_get(kb, &tau)};
}

void reflect_left(struct kb *kb, const struct reflection *r, const struct matrix *target, expr_id j) {
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, r->tau, f_const_like(&kb->f, r->tau, 0)).re);
  struct accumulator along = acc_begin(kb, f_const_like(&kb->f, r->tau, 0));
  expr_id i = tail_loop(kb, r->start, r->count);
  acc_add(kb, &along, e_now(kb, e_mul(kb, f_conj(&kb->f, matrix_get(r->m, i, r->column)), matrix_get(target, i, j))));
  kb_close(kb, 1);
  struct element sum = e_now(kb, e_add(kb, acc_get(kb, &along), matrix_get(target, r->start, j)));
  struct element e = e_now(kb, e_sub(kb, matrix_get(target, r->start, j), e_mul(kb, r->tau, sum)));
  matrix_put(target, r->start, j, e);
  i = tail_loop(kb, r->start, r->count);
  e = e_now(kb, e_sub(kb, matrix_get(target, i, j), e_mul(kb, e_mul(kb, r->tau, matrix_get(r->m, i, r->column)), sum)));
  matrix_put(target, i, j, e);
  kb_close(kb, 2);
}

void reflect_right(struct kb *kb, const struct reflection *r, const struct matrix *target, expr_id i) {
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, r->tau, f_const_like(&kb->f, r->tau, 0)).re);
  struct accumulator along = acc_begin(kb, f_const_like(&kb->f, r->tau, 0));
  expr_id j = tail_loop_of(kb, LOOP_RED, r->start, r->count);
  acc_add(kb, &along, e_now(kb, e_mul(kb, matrix_get(target, i, j), matrix_get(r->m, j, r->column))));
  kb_close(kb, 1);
  struct element sum = e_add(kb, acc_get(kb, &along), matrix_get(target, i, r->start)), part = e_now(kb, e_mul(kb, r->tau, sum));
  struct element e = e_now(kb, e_sub(kb, matrix_get(target, i, r->start), part));
  matrix_put(target, i, r->start, e);
  j = tail_loop_of(kb, LOOP_PAR, r->start, r->count);
  e = e_now(kb, e_sub(kb, matrix_get(target, i, j), e_mul(kb, part, f_conj(&kb->f, matrix_get(r->m, j, r->column)))));
  matrix_put(target, i, j, e);
  kb_close(kb, 2);
}
