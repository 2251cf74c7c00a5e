/* svd_rotations.c: singular values of small matrices by Jacobi's rotations from both sides (jacobi.h), whose signs are Eigen's. Computed in
 * double. */
#include <math.h>

#include "ir/ops/linalg/jacobi.h"
#include "ir/ops/linalg/svd.h"

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_DOUBLE, v); }

/* The n values at the end of the batch's index, sorted; columns of up to two matrices go with them. */
struct sorting {
  uint32_t values;
  dim n;
  bool descending;
  const struct matrix *columns[2];
  dim rows[2];
};
static struct element value_at(struct kb *kb, uint32_t values, const struct matrix *like, expr_id i) {
  expr_id at[LIMIT_RANK];
  memcpy(at, like->batch, sizeof *at * (size_t)like->batch_rank);
  at[like->batch_rank] = i;
  return kb_load(kb, values, at);
}
static void value_put(struct kb *kb, uint32_t values, const struct matrix *like, expr_id i, struct element e) {
  expr_id at[LIMIT_RANK];
  memcpy(at, like->batch, sizeof *at * (size_t)like->batch_rank);
  at[like->batch_rank] = i;
  kb_store(kb, values, at, e);
}
static void sort_values(struct kb *kb, const struct sorting *s) {
  const struct matrix *like = s->columns[0];
  expr_id i = kb_for_dim(kb, LOOP_SEQ, s->n);
  uint32_t best = kb_local(kb, i);
  expr_id j = kb_add(kb, i, kb_for(kb, LOOP_SEQ, kb_sub(kb, kb_dim(kb, s->n), i)));
  struct element x = value_at(kb, s->values, like, j), y = value_at(kb, s->values, like, kb_get(kb, best));
  kb_set(kb, best, expr_select(kb->k, s->descending ? e_lt(kb, y, x) : e_lt(kb, x, y), j, kb_get(kb, best)));
  kb_close(kb, 1);
  expr_id other = kb_get(kb, best);
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, i, other));
  struct element a = e_now(kb, value_at(kb, s->values, like, i)), b = e_now(kb, value_at(kb, s->values, like, other));
  value_put(kb, s->values, like, i, b);
  value_put(kb, s->values, like, other, a);
  for (int m = 0; m < 2; m++)
    if (s->columns[m])
      matrix_exchange_columns(s->columns[m], kb_dim(kb, s->rows[m]), i, other);
  kb_close(kb, 2);
}

struct svd {
  int rank;
  enum dtype wide;
  dim m, n; /* the matrix, or (where it is known to be wide) its adjoint */
  bool turned;
  dim left;                                                       /* columns of U that are asked for: the smaller size, or m */
  dim s_dims[LIMIT_RANK], u_dims[LIMIT_RANK], v_dims[LIMIT_RANK]; /* of the buffers: n values, max(n, left) and n columns */
  uint32_t s, u, v;                                               /* buffers */
  bool vectors;                                                   /* somebody asks for them */
  bool is_square;
  uint32_t work, small, tau; /* n x n, and if not square m x n and 1 x n */
};

static void svd_begin(struct op_call *c, const struct flow_value *x, bool vectors, bool full, struct svd *d) {
  struct dim_table *t = op_dims(c);
  dim rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  d->rank = x->rank;
  d->vectors = vectors;
  d->wide = wide_dtype(x->dtype);
  d->turned = dim_less(t, rows, columns) == 1;
  d->m = d->turned ? columns : rows;
  d->n = d->turned ? rows : columns;
  d->is_square = dim_equal(t, d->m, d->n) == 1;
  if (x->dtype == DTYPE_COMPLEX64)
    d->wide = x->dtype; /* phases depend on the number of rotations, and so on the precision */
  d->left = full ? d->m : dim_min(t, d->m, d->n);
  memcpy(d->s_dims, x->dims, sizeof d->s_dims);
  memcpy(d->u_dims, x->dims, sizeof d->u_dims);
  memcpy(d->v_dims, x->dims, sizeof d->v_dims);
  d->s_dims[x->rank - 2] = d->n;
  d->u_dims[x->rank - 2] = d->m;
  d->u_dims[x->rank - 1] = dim_max(t, d->n, d->left);
  d->v_dims[x->rank - 2] = d->v_dims[x->rank - 1] = d->n;
}

/* What is not finite has no singular values: NaN everywhere. */
static void fill_nan(struct kb *kb, const struct svd *d, const struct matrix *u, const struct matrix *v) {
  struct element nan = num(kb, NAN);
  expr_id j = kb_for_dim(kb, LOOP_SEQ, d->n);
  value_put(kb, d->s, u, j, nan);
  kb_close(kb, 1);
  expr_id i = kb_for_dim(kb, LOOP_SEQ, d->m);
  j = kb_for_dim(kb, LOOP_SEQ, d->u_dims[d->rank - 1]);
  matrix_put(u, i, j, nan);
  kb_close(kb, 2);
  i = kb_for_dim(kb, LOOP_SEQ, d->n);
  j = kb_for_dim(kb, LOOP_SEQ, d->n);
  matrix_put(v, i, j, nan);
  kb_close(kb, 2);
}

/* The matrix, or its adjoint; gives its largest element. */
static struct element svd_copy(struct kb *kb, const struct svd *d, const struct matrix *from, const struct matrix *u) {
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for_dim(kb, LOOP_SEQ, d->m), j = kb_for_dim(kb, LOOP_SEQ, d->n);
  struct element e = d->turned ? f_conj(&kb->f, matrix_get(from, j, i)) : matrix_get(from, i, j);
  e = e_now(kb, f_cast(&kb->f, d->wide, e));
  matrix_put(u, i, j, e);
  acc_set(kb, &largest, f_binary(&kb->f, SCALAR_MAX, acc_get(kb, &largest), f_cast(&kb->f, DTYPE_DOUBLE, f_norm(&kb->f, e))));
  kb_close(kb, 2);
  return acc_get(kb, &largest);
}

static void two_sided_buffers(struct kb *kb, struct svd *d) {
  d->work = kb_out(kb, d->wide, d->rank, d->v_dims);
  if (d->is_square)
    return;
  dim dims[LIMIT_RANK];
  memcpy(dims, d->u_dims, sizeof dims);
  dims[d->rank - 1] = d->n;
  d->small = kb_out(kb, d->wide, d->rank, dims);
  dims[d->rank - 2] = op_dim(kb->c, 1);
  d->tau = kb_out(kb, d->wide, d->rank, dims);
}

/* U holds the vectors of the longer side, V those of the shorter one: of a matrix that was turned over U is on the right. */
static void two_sided(struct kb *kb, const struct svd *d, const struct matrix *a, const struct matrix *u, const struct matrix *v,
                      const expr_id *batch) {
  struct matrix w = matrix_of(kb, d->work, batch);
  expr_id m = kb_dim(kb, d->m), n = kb_dim(kb, d->n);
  enum dtype constants = kb->f.dtype;
  if (d->is_square) {
    expr_id i = kb_for(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, n);
    matrix_put(&w, i, j, matrix_get(a, i, j));
    kb_close(kb, 2);
    matrix_set_identity(u, kb_dim(kb, d->n), kb_dim(kb, d->n));
    matrix_set_identity(v, kb_dim(kb, d->n), kb_dim(kb, d->n));
  } else {
    struct pivoted_qr q = {.a = *a,
                           .q = *u,
                           .p = *v,
                           .r = w,
                           .tau = matrix_of(kb, d->tau, batch),
                           .rows = m,
                           .columns = n,
                           .q_columns = kb_dim(kb, d->u_dims[d->rank - 1]),
                           .adjoint = d->turned};
    kb->f.dtype = d->wide;
    pivoted_qr(kb, &q);
  }
  kb->f.dtype = d->wide;
  if (!d->vectors)
    jacobi_diagonalize(kb, &w, NULL, n, NULL, n, n);
  else if (d->turned)
    jacobi_diagonalize(kb, &w, v, n, u, m, n);
  else
    jacobi_diagonalize(kb, &w, u, m, v, n, n);
  kb->f.dtype = constants;
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  value_put(kb, d->s, u, i, f_cast(&kb->f, DTYPE_DOUBLE, f_real(matrix_get(&w, i, i))));
  kb_close(kb, 1);
}

/* All of it: one kernel. */
static status svd_kernel(struct op_call *c, value_id in, const struct flow_value *x, struct svd *d, value_id parts[3]) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  uint32_t a = kb_in(&kb, in);
  d->s = kb_out(&kb, DTYPE_DOUBLE, x->rank - 1, d->s_dims);
  d->u = kb_out(&kb, d->wide, x->rank, d->u_dims);
  d->v = kb_out(&kb, d->wide, x->rank, d->v_dims);
  two_sided_buffers(&kb, d);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x->rank - 2, x->dims, at);
  struct matrix from = matrix_of(&kb, a, at), u = matrix_of(&kb, d->u, at), v = matrix_of(&kb, d->v, at);
  struct matrix given = !d->is_square ? matrix_of(&kb, d->small, at) : u;
  struct element largest = svd_copy(&kb, d, &from, &given);
  kb_if(&kb, e_lt(&kb, largest, num(&kb, INFINITY)));
  two_sided(&kb, d, &given, &u, &v, at);
  sort_values(&kb, &(struct sorting){.values = d->s, .n = d->n, .descending = true, .columns = {&u, &v}, .rows = {d->m, d->n}});
  kb_else(&kb);
  fill_nan(&kb, d, &u, &v);
  kb_close(&kb, x->rank - 1);
  parts[0] = kb_value(&kb, d->s);
  parts[1] = kb_value(&kb, d->u);
  parts[2] = kb_value(&kb, d->v);
  return kb_finish(&kb);
}

status svd_by_rotations(struct op_call *c, value_id in, const struct svd_wish *wish, struct svd_parts *out) {
  struct flow_value x = *op_value(c, in);
  struct svd d = {0};
  value_id parts[3];
  svd_begin(c, &x, wish->vectors, wish->full, &d);
  TRY(svd_kernel(c, in, &x, &d, parts));
  *out = (struct svd_parts){.s = parts[0], .count = dim_min(op_dims(c), d.m, d.n)};
  if (wish->vectors) {
    out->u = parts[d.turned ? 2 : 1];
    out->v = parts[d.turned ? 1 : 2];
  }
  return OK;
}
