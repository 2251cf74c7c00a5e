/* householder.c: see householder.h. */
#include "ir/ops/linalg/householder.h"

#include <float.h>

static struct element square_of(struct kb *kb, struct element e) { return f_real(e_mul(kb, e, f_conj(&kb->f, e))); }

/* Opens a loop over the rows behind the first; closed by the caller. */
static expr_id tail_loop_of(struct kb *kb, enum loop_kind kind, expr_id start, expr_id count) {
  return loop_from(kb, kind, kb_add(kb, start, kb_int(kb, 1)), count);
}
static expr_id tail_loop(struct kb *kb, expr_id start, expr_id count) { return tail_loop_of(kb, LOOP_SEQ, start, count); }

/* A column from row `start` on, or a row from that column on. */
struct line {
  const struct matrix *m;
  expr_id number, start, count;
  bool is_row, is_scaled;
};
static struct element line_get(const struct line *l, expr_id i) {
  return l->is_row ? matrix_get(l->m, l->number, i) : matrix_get(l->m, i, l->number);
}
static void line_put(const struct line *l, expr_id i, struct element e) {
  matrix_put(l->m, l->is_row ? l->number : i, l->is_row ? i : l->number, e);
}

/* A tail whose square is not above this is none. Where the largest element is about 1, a square that may have lost digits is nothing. */
static double least_square(const struct line *l, enum dtype real) {
  if (l->is_scaled)
    return real == DTYPE_DOUBLE ? 1e-288 : 1e-28;
  return real == DTYPE_DOUBLE ? DBL_MIN : FLT_MIN;
}
/* Replaces what is behind the first element by the tail. */
static struct row_reflection reflect_line(struct kb *kb, const struct line *l) {
  enum dtype dtype = kb->k->buffers.items[l->m->buffer].dtype, real = dtype_real(dtype);
  struct element zero = f_const_as(&kb->f, real, 0), tiny = f_const_as(&kb->f, real, least_square(l, real));
  struct accumulator tail = acc_begin(kb, zero);
  expr_id i = tail_loop_of(kb, l->is_row ? LOOP_RED : LOOP_SEQ, l->start, l->count);
  acc_add(kb, &tail, square_of(kb, line_get(l, i)));
  kb_close(kb, 1);
  struct element first = e_now(kb, line_get(l, l->start));
  struct accumulator tau = acc_begin(kb, f_const_as(&kb->f, dtype, 0)), multiple = acc_begin(kb, f_real(first));
  struct accumulator divisor = acc_begin(kb, f_const_as(&kb->f, dtype, 1));
  expr_id needed = e_lt(kb, tiny, acc_get(kb, &tail));
  if (dtype_is_complex(dtype)) {
    struct element im = f_imag(&kb->f, first);
    needed = expr_binary(kb->k, SCALAR_OR, needed, e_lt(kb, tiny, e_mul(kb, im, im)));
  }
  kb_if(kb, needed);
  struct element length = e_now(kb, f_unary(&kb->f, SCALAR_SQRT, e_add(kb, square_of(kb, first), acc_get(kb, &tail))));
  struct element negative = real_element(e_lt(kb, f_real(first), zero));
  acc_set(kb, &multiple, f_select(&kb->f, negative, length, f_unary(&kb->f, SCALAR_NEG, length)));
  struct element b = acc_get(kb, &multiple);
  acc_set(kb, &divisor, e_sub(kb, first, b));
  i = tail_loop_of(kb, l->is_row ? LOOP_PAR : LOOP_SEQ, l->start, l->count);
  line_put(l, i, e_now(kb, e_div(kb, line_get(l, i), acc_get(kb, &divisor))));
  kb_close(kb, 1);
  acc_set(kb, &tau, f_conj(&kb->f, e_div(kb, e_sub(kb, b, first), b)));
  kb_else(kb);
  i = tail_loop_of(kb, l->is_row ? LOOP_PAR : LOOP_SEQ, l->start, l->count);
  line_put(l, i, f_const_as(&kb->f, dtype, 0));
  kb_close(kb, 2);
  return (struct row_reflection){acc_get(kb, &tau), acc_get(kb, &multiple), acc_get(kb, &divisor)};
}

struct reflection reflect_column(struct kb *kb, const struct matrix *m, expr_id column, expr_id start, expr_id count) {
  struct row_reflection r = reflect_line(kb, &(struct line){m, column, start, count, false, false});
  matrix_put(m, start, column, f_cast(&kb->f, kb->k->buffers.items[m->buffer].dtype, r.multiple));
  return (struct reflection){m, column, start, count, r.tau};
}
struct row_reflection reflect_row(struct kb *kb, const struct matrix *m, expr_id row, expr_id start, expr_id count, bool is_scaled) {
  struct row_reflection r = reflect_line(kb, &(struct line){m, row, start, count, true, is_scaled});
  matrix_put(m, row, start, f_const_as(&kb->f, kb->k->buffers.items[m->buffer].dtype, 1));
  return r;
}

#define PART 16 /* terms that are summed up by themselves, so that errors do not add up over all */

/* The product of vector k, or of its conjugate, with column j, from row k on. */
static struct element product_with(struct kb *kb, const struct reflections *r, const struct matrix *q, expr_id k, expr_id j,
                                   bool conjugate) {
  struct element zero = f_const_as(&kb->f, kb->k->buffers.items[q->buffer].dtype, 0);
  struct accumulator all = acc_begin(kb, zero);
  expr_id left = kb_sub(kb, r->length, k), most = kb_int(kb, PART), parts = kb_div(kb, kb_add(kb, left, kb_int(kb, PART - 1)), most);
  expr_id done = kb_mul(kb, kb_for(kb, LOOP_SEQ, parts), most);
  struct accumulator sum = acc_begin(kb, zero);
  expr_id count = expr_binary(kb->k, SCALAR_MIN, most, kb_sub(kb, left, done));
  expr_id i = kb_add(kb, k, kb_add(kb, done, kb_for(kb, LOOP_SEQ, count)));
  struct element v = matrix_get(r->vectors, k, i);
  acc_add(kb, &sum, e_mul(kb, conjugate ? f_conj(&kb->f, v) : v, matrix_get(q, i, j)));
  kb_close(kb, 1);
  acc_add(kb, &all, acc_get(kb, &sum));
  kb_close(kb, 1);
  return acc_get(kb, &all);
}

/* Starts from the identity, whose columns go through all reflections a few at a time, and stay in the caches meanwhile: the product itself
 * is made from the last reflection to the first, its transpose by the conjugates from the first to the last. */
static void collect(struct kb *kb, const struct reflections *r, const struct matrix *q, expr_id columns, bool transposed) {
  enum dtype dtype = kb->k->buffers.items[q->buffer].dtype;
  expr_id j = kb_for(kb, LOOP_PAR, columns), i = kb_for(kb, LOOP_SEQ, r->length);
  struct element on_diagonal = real_element(expr_binary(kb->k, SCALAR_EQ, i, j));
  matrix_put(q, i, j, f_select(&kb->f, on_diagonal, f_const_as(&kb->f, dtype, 1), f_const_as(&kb->f, dtype, 0)));
  kb_close(kb, 1);
  expr_id step = kb_for(kb, LOOP_SEQ, r->count), k = transposed ? step : kb_sub(kb, kb_sub(kb, r->count, kb_int(kb, 1)), step);
  struct element tau = f_conj(&kb->f, matrix_get(r->tau, r->tau_row, k));
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, tau, f_const_as(&kb->f, dtype, 0)).re); /* else NaN would get into row k */
  struct element part = e_now(kb, e_mul(kb, tau, product_with(kb, r, q, k, j, !transposed)));
  i = kb_add(kb, k, kb_for(kb, LOOP_SEQ, kb_sub(kb, r->length, k)));
  struct element v = matrix_get(r->vectors, k, i);
  matrix_put(q, i, j, e_now(kb, e_sub(kb, matrix_get(q, i, j), e_mul(kb, transposed ? f_conj(&kb->f, v) : v, part))));
  kb_close(kb, 4);
}

/* The first columns: each by itself, from the last reflection that it meets to the first. */
static void collect_first(struct kb *kb, const struct reflections *r, const struct matrix *q, expr_id rows) {
  expr_id one = kb_int(kb, 1), row = kb_for(kb, LOOP_SEQ, rows), i = kb_for(kb, LOOP_PAR, r->length);
  enum dtype dtype = kb->k->buffers.items[q->buffer].dtype;
  struct element zero = f_const_as(&kb->f, dtype, 0);
  struct element on_diagonal = real_element(expr_binary(kb->k, SCALAR_EQ, i, row));
  matrix_put(q, row, i, f_select(&kb->f, on_diagonal, f_const_as(&kb->f, dtype, 1), zero));
  kb_close(kb, 1);
  expr_id last = expr_binary(kb->k, SCALAR_MIN, row, kb_sub(kb, r->count, one));
  expr_id k = kb_sub(kb, last, kb_for(kb, LOOP_SEQ, kb_add(kb, last, one))), left = kb_sub(kb, r->length, k);
  struct accumulator along = acc_begin(kb, zero);
  i = kb_add(kb, k, kb_for(kb, LOOP_RED, left));
  acc_add(kb, &along, e_mul(kb, f_conj(&kb->f, matrix_get(r->vectors, k, i)), matrix_get(q, row, i)));
  kb_close(kb, 1);
  struct element tau = f_conj(&kb->f, matrix_get(r->tau, r->tau_row, k)), part = e_now(kb, e_mul(kb, tau, acc_get(kb, &along)));
  i = kb_add(kb, k, kb_for(kb, LOOP_PAR, left));
  matrix_put(q, row, i, e_now(kb, e_sub(kb, matrix_get(q, row, i), e_mul(kb, part, matrix_get(r->vectors, k, i)))));
  kb_close(kb, 3);
}

void collect_reflections(struct kb *kb, const struct reflections *r, const struct matrix *q, expr_id rows) {
  if (rows == r->length)
    collect(kb, r, q, rows, true);
  else
    collect_first(kb, r, q, rows);
}

void collect_columns(struct kb *kb, const struct reflections *r, const struct matrix *q, expr_id columns) {
  collect(kb, r, q, columns, false);
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
