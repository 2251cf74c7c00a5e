/* sweeps.c: see sweeps.h. */
#include "ir/ops/linalg/sweeps.h"

#define KEPT 16 /* of matrices of so many rows and more; of small ones, which may be many, as many as they have rows */

void sweeps_create(struct kb *kb, enum dtype dtype, int rank, const dim *dims, dim n, int matrices, struct sweeps *out) {
  struct dim_table *t = op_dims(kb->c);
  dim own[LIMIT_RANK], most = dim_min(t, n, op_dim(kb->c, KEPT));
  memcpy(own, dims, sizeof own);
  own[rank - 2] = dim_mul(t, most, op_dim(kb->c, 2 * matrices));
  own[rank - 1] = n;
  *out = (struct sweeps){.kb = kb, .most = kb_dim(kb, most), .places = matrices};
  out->turns.buffer = kb_scratch(kb, dtype, rank, own);
  own[rank - 2] = op_dim(kb->c, 2);
  own[rank - 1] = most;
  out->bounds.buffer = kb_scratch(kb, DTYPE_INT64, rank, own);
}

void sweeps_begin(struct sweeps *s, const expr_id *batch) {
  s->turns = matrix_of(s->kb, s->turns.buffer, batch);
  s->bounds = matrix_of(s->kb, s->bounds.buffer, batch);
  s->kept = kb_local(s->kb, kb_int(s->kb, 0));
}
void sweeps_rotate(struct sweeps *s, const struct matrix *m, expr_id width) {
  s->rotated[s->matrices] = *m;
  s->width[s->matrices++] = width;
}

/* The row of a sweep's cosines; its sines are in the next one. */
static expr_id row_of(const struct sweeps *s, expr_id sweep, int matrix) {
  return kb_add(s->kb, kb_mul(s->kb, sweep, kb_int(s->kb, 2 * s->places)), kb_int(s->kb, 2 * matrix));
}

/* x' = c x + s y, y' = c y - s x. */
static void rotate(struct kb *kb, const struct accumulator *x, const struct accumulator *y, struct element c, struct element s) {
  struct element old_x = acc_get(kb, x), old_y = acc_get(kb, y);
  struct element new_x = e_now(kb, e_add(kb, e_mul(kb, c, old_x), e_mul(kb, s, old_y)));
  acc_set(kb, y, e_sub(kb, e_mul(kb, c, old_y), e_mul(kb, s, old_x)));
  acc_set(kb, x, new_x);
}
/* The same in three shears, each of which rounds once; t is the negative tangent of half the angle. */
static void rotate_acute(struct kb *kb, const struct accumulator *x, const struct accumulator *y, struct element t, struct element s) {
  acc_add(kb, y, e_mul(kb, t, acc_get(kb, x)));
  acc_add(kb, x, e_mul(kb, s, acc_get(kb, y)));
  acc_add(kb, y, e_mul(kb, t, acc_get(kb, x)));
}

/* The row that a sweep carries along is loaded and stored once. Bounds are no locals: they are the same for all columns, the lanes. */
static void apply_to(const struct sweeps *s, int matrix) {
  struct kb *kb = s->kb;
  const struct matrix *m = &s->rotated[matrix];
  enum dtype dtype = dtype_real(kb->k->buffers.items[m->buffer].dtype);
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1), j = kb_for(kb, LOOP_PAR, s->width[matrix]);
  expr_id sweep = kb_for(kb, LOOP_SEQ, kb_get(kb, s->kept)), row = row_of(s, sweep, matrix);
  expr_id first = matrix_get(&s->bounds, zero, sweep).re, count = matrix_get(&s->bounds, one, sweep).re;
  struct accumulator carried = acc_begin(kb, matrix_get(m, first, j));
  expr_id k = kb_add(kb, first, kb_for(kb, LOOP_SEQ, count)), next = kb_add(kb, k, one);
  struct element turn = f_cast(&kb->f, dtype, matrix_get(&s->turns, row, k));
  struct element sine = f_cast(&kb->f, dtype, matrix_get(&s->turns, kb_add(kb, row, one), k));
  struct accumulator y = acc_begin(kb, matrix_get(m, next, j));
  if (s->is_acute)
    rotate_acute(kb, &carried, &y, turn, sine);
  else
    rotate(kb, &carried, &y, turn, sine);
  matrix_put(m, k, j, acc_get(kb, &carried));
  acc_set(kb, &carried, acc_get(kb, &y));
  kb_close(kb, 1);
  matrix_put(m, kb_add(kb, first, count), j, acc_get(kb, &carried));
  kb_close(kb, 2);
}
void sweeps_apply(const struct sweeps *s) {
  for (int matrix = 0; matrix < s->matrices; matrix++)
    apply_to(s, matrix);
  kb_set(s->kb, s->kept, kb_int(s->kb, 0));
}

void sweep_begin(const struct sweeps *s, expr_id first, expr_id count) {
  if (!s->matrices)
    return;
  struct kb *kb = s->kb;
  kb_if(kb, expr_binary(kb->k, SCALAR_EQ, kb_get(kb, s->kept), s->most));
  sweeps_apply(s);
  kb_close(kb, 1);
  expr_id sweep = kb_get(kb, s->kept);
  matrix_put(&s->bounds, kb_int(kb, 0), sweep, real_element(first));
  matrix_put(&s->bounds, kb_int(kb, 1), sweep, real_element(count));
}
void sweep_put(const struct sweeps *s, int matrix, expr_id k, struct element cosine, struct element sine) {
  if (matrix >= s->matrices)
    return;
  struct kb *kb = s->kb;
  expr_id row = row_of(s, kb_get(kb, s->kept), matrix);
  struct element above = e_add(kb, f_const_like(&kb->f, cosine, 1), cosine);
  matrix_put(&s->turns, row, k, s->is_acute ? f_unary(&kb->f, SCALAR_NEG, e_div(kb, sine, above)) : cosine);
  matrix_put(&s->turns, kb_add(kb, row, kb_int(kb, 1)), k, sine);
}
void sweep_end(const struct sweeps *s) {
  if (s->matrices)
    kb_set(s->kb, s->kept, kb_add(s->kb, kb_get(s->kb, s->kept), kb_int(s->kb, 1)));
}

void sweeps_exchange(const struct sweeps *s, expr_id i, expr_id other) {
  for (int matrix = 0; matrix < s->matrices; matrix++) {
    const struct matrix *m = &s->rotated[matrix];
    expr_id j = kb_for(s->kb, LOOP_PAR, s->width[matrix]);
    struct element x = matrix_take(m, i, j), y = matrix_take(m, other, j);
    matrix_put(m, i, j, y);
    matrix_put(m, other, j, x);
    kb_close(s->kb, 1);
  }
}
