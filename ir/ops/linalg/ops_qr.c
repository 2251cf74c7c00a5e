/* ops_qr.c: A = Q R by Householder's reflections, in double and rounded once. */
#include "ir/ops/linalg/householder.h"

struct qr {
  int rank;
  dim m, n, p, size;        /* rows, columns, the smaller of them; columns of Q and rows of R */
  uint32_t work, tau, q, r; /* buffers */
};

/* The reflections' tails below the diagonal of `work`, R above it. */
static void factor(struct kb *kb, const struct qr *d, const struct matrix *work, const struct matrix *tau) {
  expr_id k = kb_for_dim(kb, LOOP_SEQ, d->p), next = kb_add(kb, k, kb_int(kb, 1));
  struct reflection r = reflect_column(kb, work, k, k, kb_dim(kb, d->m));
  matrix_put(tau, kb_int(kb, 0), k, r.tau);
  expr_id j = kb_add(kb, next, kb_for(kb, LOOP_PAR, kb_sub(kb, kb_dim(kb, d->n), next)));
  reflect_left(kb, &r, work, j);
  kb_close(kb, 2);
}

/* The adjoint reflections' product, from the last to the first, applied to the columns of the identity. */
static void collect(struct kb *kb, const struct qr *d, const struct matrix *work, const struct matrix *tau, const struct matrix *q) {
  struct formula *f = &kb->f;
  expr_id i = kb_for_dim(kb, LOOP_SEQ, d->m), j = kb_for_dim(kb, LOOP_SEQ, d->size);
  matrix_put(q, i, j, f_select(f, real_element(expr_binary(kb->k, SCALAR_EQ, i, j)), f_const(f, 1), f_const(f, 0)));
  kb_close(kb, 2);
  expr_id step = kb_for_dim(kb, LOOP_SEQ, d->p), k = kb_sub(kb, kb_sub(kb, kb_dim(kb, d->p), kb_int(kb, 1)), step);
  struct reflection r = {work, k, k, kb_dim(kb, d->m), f_conj(f, matrix_take(tau, kb_int(kb, 0), k))};
  j = kb_for_dim(kb, LOOP_PAR, d->size);
  reflect_left(kb, &r, q, j);
  kb_close(kb, 2);
}

static void copy_upper(struct kb *kb, const struct qr *d, const struct matrix *work, const struct matrix *r) {
  expr_id i = kb_for_dim(kb, LOOP_SEQ, d->size), j = kb_for_dim(kb, LOOP_SEQ, d->n);
  struct element upper = real_element(expr_binary(kb->k, SCALAR_LE, i, j)), e = matrix_get(work, i, j);
  matrix_put(r, i, j, f_select(&kb->f, upper, e, f_const(&kb->f, 0)));
  kb_close(kb, 2);
}

static void qr_buffers(struct kb *kb, struct qr *d, enum dtype wide, const dim *input) {
  dim dims[LIMIT_RANK];
  memcpy(dims, input, sizeof dims);
  d->work = kb_out(kb, wide, d->rank, dims);
  dims[d->rank - 1] = d->size;
  d->q = kb_out(kb, wide, d->rank, dims);
  dims[d->rank - 2] = d->size;
  dims[d->rank - 1] = d->n;
  d->r = kb_out(kb, wide, d->rank, dims);
  dims[d->rank - 2] = op_dim(kb->c, 1);
  dims[d->rank - 1] = d->p;
  d->tau = kb_out(kb, wide, d->rank, dims);
}

status build_qr(struct op_call *c) {
  value_id v, narrow;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 2)
    return fail(INVALID_ARGUMENT, "Input tensor 0 must have rank >= 2, got %d", x.rank);
  struct qr d = {.rank = x.rank, .m = x.dims[x.rank - 2], .n = x.dims[x.rank - 1]};
  d.p = dim_min(op_dims(c), d.m, d.n);
  d.size = node_attr_int(c->node, "full_matrices", 0) ? d.m : d.p;
  struct kb kb;
  enum dtype wide = wide_dtype(x.dtype);
  kb_begin(&kb, c, wide);
  uint32_t a = kb_in(&kb, v);
  qr_buffers(&kb, &d, wide, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix from = matrix_of(&kb, a, at), work = matrix_of(&kb, d.work, at), tau = matrix_of(&kb, d.tau, at);
  struct matrix q = matrix_of(&kb, d.q, at), r = matrix_of(&kb, d.r, at);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, d.m), j = kb_for_dim(&kb, LOOP_SEQ, d.n);
  matrix_put(&work, i, j, f_cast(&kb.f, wide, matrix_get(&from, i, j)));
  kb_close(&kb, 2);
  factor(&kb, &d, &work, &tau);
  copy_upper(&kb, &d, &work, &r);
  collect(&kb, &d, &work, &tau, &q);
  kb_close(&kb, x.rank - 2);
  value_id values[2] = {kb_value(&kb, d.q), kb_value(&kb, d.r)};
  TRY(kb_finish(&kb));
  for (uint32_t o = 0; o < 2; o++) {
    TRY(op_cast(c, values[o], x.dtype, &narrow));
    op_set_output(c, o, narrow);
  }
  return OK;
}
