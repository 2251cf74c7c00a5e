/* ops_qr.c: A = Q R by Householder's reflections, in double and rounded once. */
#include "ir/ops/linalg/householder.h"

struct qr {
  int rank;
  dim m, n, p, size;                 /* rows, columns, the smaller of them; columns of Q and rows of R */
  uint32_t work, vectors, tau, wide; /* buffers: A, which becomes R; the reflections' vectors as rows; Q */
  uint32_t q, r;                     /* as they are given back */
};

static void factor(struct kb *kb, const struct qr *d, const struct matrix *work, const struct reflections *all) {
  expr_id k = kb_for_dim(kb, LOOP_SEQ, d->p), next = kb_add(kb, k, kb_int(kb, 1)), left = kb_sub(kb, all->length, k);
  expr_id i = kb_add(kb, k, kb_for(kb, LOOP_SEQ, left));
  matrix_put(all->vectors, k, i, matrix_get(work, i, k));
  kb_close(kb, 1);
  struct row_reflection r = reflect_row(kb, all->vectors, k, k, all->length, false);
  matrix_put(all->tau, all->tau_row, k, r.tau);
  matrix_put(work, k, k, f_cast(&kb->f, kb->f.dtype, r.multiple));
  kb_if(kb, f_binary(&kb->f, SCALAR_NE, r.tau, f_const(&kb->f, 0)).re); /* else NaN would get into row k */
  expr_id j = kb_add(kb, next, kb_for(kb, LOOP_PAR, kb_sub(kb, kb_dim(kb, d->n), next)));
  struct accumulator along = acc_begin(kb, f_const(&kb->f, 0));
  i = kb_add(kb, k, kb_for(kb, LOOP_SEQ, left));
  acc_add(kb, &along, e_mul(kb, f_conj(&kb->f, matrix_get(all->vectors, k, i)), matrix_get(work, i, j)));
  kb_close(kb, 1);
  struct element part = e_now(kb, e_mul(kb, r.tau, acc_get(kb, &along)));
  i = kb_add(kb, k, kb_for(kb, LOOP_SEQ, left));
  matrix_put(work, i, j, e_now(kb, e_sub(kb, matrix_get(work, i, j), e_mul(kb, part, matrix_get(all->vectors, k, i)))));
  kb_close(kb, 4);
}

/* Q and R, rounded. */
static void put_factors(struct kb *kb, const struct qr *d, const struct matrix *work, const struct matrix *wide, const expr_id *batch) {
  struct matrix q = matrix_of(kb, d->q, batch), r = matrix_of(kb, d->r, batch);
  enum dtype dtype = kb->k->buffers.items[d->q].dtype;
  expr_id i = kb_for_dim(kb, LOOP_PAR, d->m), j = kb_for_dim(kb, LOOP_PAR, d->size);
  matrix_put(&q, i, j, f_cast(&kb->f, dtype, matrix_get(wide, i, j)));
  kb_close(kb, 2);
  i = kb_for_dim(kb, LOOP_PAR, d->size);
  j = kb_for_dim(kb, LOOP_PAR, d->n);
  struct element upper = real_element(expr_binary(kb->k, SCALAR_LE, i, j));
  struct element e = f_cast(&kb->f, dtype, matrix_get(work, i, j));
  matrix_put(&r, i, j, f_select(&kb->f, upper, e, f_const_as(&kb->f, dtype, 0)));
  kb_close(kb, 2);
}

static uint32_t own_matrix(struct kb *kb, const struct qr *d, const dim *input, dim rows, dim columns) {
  dim dims[LIMIT_RANK];
  memcpy(dims, input, sizeof dims);
  dims[d->rank - 2] = rows;
  dims[d->rank - 1] = matrix_row(kb->c, columns);
  return kb_scratch(kb, kb->f.dtype, d->rank, dims);
}
static void qr_buffers(struct kb *kb, struct qr *d, const struct flow_value *x) {
  dim dims[LIMIT_RANK];
  memcpy(dims, x->dims, sizeof dims);
  d->work = own_matrix(kb, d, x->dims, d->m, d->n);
  d->vectors = own_matrix(kb, d, x->dims, d->p, d->m);
  d->tau = own_matrix(kb, d, x->dims, op_dim(kb->c, 1), d->p);
  d->wide = own_matrix(kb, d, x->dims, d->m, d->size);
  dims[d->rank - 1] = d->size;
  d->q = kb_out(kb, x->dtype, d->rank, dims);
  dims[d->rank - 2] = d->size;
  dims[d->rank - 1] = d->n;
  d->r = kb_out(kb, x->dtype, d->rank, dims);
}

status build_qr(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 2)
    return fail(INVALID_ARGUMENT, "Input tensor 0 must have rank >= 2, got %d", x.rank);
  struct qr d = {.rank = x.rank, .m = x.dims[x.rank - 2], .n = x.dims[x.rank - 1]};
  d.p = dim_min(op_dims(c), d.m, d.n);
  d.size = node_attr_int(c->node, "full_matrices", 0) ? d.m : d.p;
  struct kb kb;
  kb_begin(&kb, c, wide_dtype(x.dtype));
  uint32_t a = kb_in(&kb, v);
  qr_buffers(&kb, &d, &x);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix from = matrix_of(&kb, a, at), work = matrix_of(&kb, d.work, at), wide = matrix_of(&kb, d.wide, at);
  struct matrix vectors = matrix_of(&kb, d.vectors, at), tau = matrix_of(&kb, d.tau, at);
  struct reflections all = {&vectors, &tau, kb_int(&kb, 0), kb_dim(&kb, d.p), kb_dim(&kb, d.m)};
  expr_id i = kb_for_dim(&kb, LOOP_PAR, d.m), j = kb_for_dim(&kb, LOOP_PAR, d.n);
  matrix_put(&work, i, j, f_cast(&kb.f, kb.f.dtype, matrix_get(&from, i, j)));
  kb_close(&kb, 2);
  factor(&kb, &d, &work, &all);
  collect_columns(&kb, &all, &wide, kb_dim(&kb, d.size));
  put_factors(&kb, &d, &work, &wide, at);
  kb_close(&kb, x.rank - 2);
  op_set_output(c, 0, kb_value(&kb, d.q));
  op_set_output(c, 1, kb_value(&kb, d.r));
  return kb_finish(&kb);
}
