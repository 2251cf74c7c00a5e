/* ops_svd.c: singular values by Jacobi's rotations: slower than bidiagonal methods for large matrices, but short and as exact as any.
 * Computed in double. Sizes that are known: from both sides (jacobi.h). Else the columns are rotated until they are orthogonal: of a
 * complex pair one column is first turned so that its coupling with the other becomes real; the rotation is then that of a real pair. */
#include <math.h>

#include "ir/ops/linalg/jacobi.h"
#include "ir/ops/linalg/svd.h"

#define SWEEPS 60 /* it takes about 10 */

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_DOUBLE, v); }
static struct element un(struct kb *kb, enum scalar_op op, struct element a) { return f_unary(&kb->f, op, a); }
static expr_id less(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_LT, a, b).re; }

/* The rotation that makes the pair (p, q) with coupling `off` diagonal: difference = value(q) - value(p). */
struct rotation {
  struct element c, s;
};
static struct rotation rotation_of(struct kb *kb, struct element difference, struct element off) {
  struct element theta = e_now(kb, e_div(kb, difference, e_add(kb, off, off))), one = num(kb, 1);
  struct element size = e_add(kb, un(kb, SCALAR_ABS, theta), un(kb, SCALAR_SQRT, e_add(kb, e_mul(kb, theta, theta), one)));
  struct element t = e_div(kb, one, size);
  t = e_now(kb, f_select(&kb->f, real_element(less(kb, theta, num(kb, 0))), un(kb, SCALAR_NEG, t), t));
  struct element c = e_now(kb, e_div(kb, one, un(kb, SCALAR_SQRT, e_add(kb, e_mul(kb, t, t), one))));
  return (struct rotation){c, e_now(kb, e_mul(kb, t, c))};
}

/* Rotates columns p and q of `count` elements. */
static void rotate(struct kb *kb, const struct matrix *m, struct rotation r, expr_id p, expr_id q, dim count) {
  expr_id k = kb_for_dim(kb, LOOP_SEQ, count);
  struct element a = matrix_take(m, k, p), b = matrix_take(m, k, q);
  matrix_put(m, k, p, e_sub(kb, e_mul(kb, r.c, a), e_mul(kb, r.s, b)));
  matrix_put(m, k, q, e_add(kb, e_mul(kb, r.s, a), e_mul(kb, r.c, b)));
  kb_close(kb, 1);
}

/* Multiplies column q by a number of length 1. */
static void turn(struct kb *kb, const struct matrix *m, struct element by, expr_id q, dim count) {
  expr_id k = kb_for_dim(kb, LOOP_SEQ, count);
  struct element e = e_now(kb, e_mul(kb, matrix_get(m, k, q), by));
  matrix_put(m, k, q, e);
  kb_close(kb, 1);
}
/* What makes a coupling (not 0) real. */
static struct element turn_of(struct kb *kb, struct element off) { return e_now(kb, e_div(kb, f_conj(&kb->f, off), f_norm(&kb->f, off))); }

static void set_identity(struct kb *kb, const struct matrix *m, dim n) {
  expr_id i = kb_for_dim(kb, LOOP_SEQ, n), j = kb_for_dim(kb, LOOP_SEQ, n);
  struct element same = real_element(expr_binary(kb->k, SCALAR_EQ, i, j));
  matrix_put(m, i, j, f_select(&kb->f, same, num(kb, 1), num(kb, 0)));
  kb_close(kb, 2);
}

/* Opens: while a sweep rotated something { for p { for q > p {. Closed by sweep_end. */
struct sweep {
  uint32_t rotated, count;
  expr_id p, q;
};
static struct sweep sweep_begin(struct kb *kb, dim n) {
  struct sweep s = {.rotated = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1)), .count = kb_local(kb, kb_int(kb, 0))};
  kb_while(kb, kb_and(kb, kb_get(kb, s.rotated), kb_lt(kb, kb_get(kb, s.count), kb_int(kb, SWEEPS))));
  kb_set(kb, s.rotated, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_set(kb, s.count, kb_add(kb, kb_get(kb, s.count), kb_int(kb, 1)));
  s.p = kb_for_dim(kb, LOOP_SEQ, n);
  expr_id after = kb_add(kb, s.p, kb_int(kb, 1));
  s.q = kb_add(kb, after, kb_for(kb, LOOP_SEQ, kb_sub(kb, kb_dim(kb, n), after)));
  return s;
}
static void sweep_end(struct kb *kb) { kb_close(kb, 3); }

/* Exchanges columns i and j. */
static void exchange_columns(struct kb *kb, const struct matrix *m, dim rows, expr_id i, expr_id j) {
  expr_id k = kb_for_dim(kb, LOOP_SEQ, rows);
  struct element a = matrix_take(m, k, i), b = matrix_take(m, k, j);
  matrix_put(m, k, i, b);
  matrix_put(m, k, j, a);
  kb_close(kb, 1);
}

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
  kb_set(kb, best, expr_select(kb->k, s->descending ? less(kb, y, x) : less(kb, x, y), j, kb_get(kb, best)));
  kb_close(kb, 1);
  expr_id other = kb_get(kb, best);
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, i, other));
  struct element a = e_now(kb, value_at(kb, s->values, like, i)), b = e_now(kb, value_at(kb, s->values, like, other));
  value_put(kb, s->values, like, i, b);
  value_put(kb, s->values, like, other, a);
  for (int m = 0; m < 2; m++)
    if (s->columns[m])
      exchange_columns(kb, s->columns[m], s->rows[m], i, other);
  kb_close(kb, 2);
}

/* What TensorFlow gives where vectors were not asked for. */
static value_id no_vectors(struct op_call *c, enum dtype dtype) {
  static const double zero[2];
  return op_constant(c, dtype, 0, NULL, zero);
}

/* ---- singular values: the columns of A are rotated until they are orthogonal; their lengths are the values ---- */

struct svd {
  int rank;
  enum dtype wide;
  dim m, n; /* the matrix, or (where it is known to be wide) its adjoint */
  bool turned;
  dim left;                                                       /* columns of U that are asked for: the smaller size, or m */
  dim s_dims[LIMIT_RANK], u_dims[LIMIT_RANK], v_dims[LIMIT_RANK]; /* of the buffers: n values, max(n, left) and n columns */
  uint32_t s, u, v;                                               /* buffers */
  bool vectors;                                                   /* somebody asks for them */
  bool is_square, known;     /* sizes that are known: rotations from both sides, whose signs are Eigen's */
  uint32_t work, small, tau; /* known: n x n, and if not square m x n and 1 x n */
};

static struct element column_product(struct kb *kb, const struct matrix *m, dim rows, expr_id p, expr_id q) {
  struct accumulator acc = acc_begin(kb, f_const_as(&kb->f, kb->k->buffers.items[m->buffer].dtype, 0));
  expr_id k = kb_for_dim(kb, LOOP_SEQ, rows);
  acc_add(kb, &acc, e_mul(kb, f_conj(&kb->f, matrix_get(m, k, p)), matrix_get(m, k, q)));
  kb_close(kb, 1);
  return acc_get(kb, &acc);
}
static struct element column_square(struct kb *kb, const struct matrix *m, dim rows, expr_id p) {
  return f_real(column_product(kb, m, rows, p, p));
}

static void orthogonalize(struct kb *kb, const struct svd *d, const struct matrix *u, const struct matrix *v) {
  struct sweep s = sweep_begin(kb, d->n);
  struct element pp = column_square(kb, u, d->m, s.p), qq = column_square(kb, u, d->m, s.q);
  struct element pq = column_product(kb, u, d->m, s.p, s.q);
  struct element limit = e_mul(kb, num(kb, 1e-16), un(kb, SCALAR_SQRT, e_mul(kb, pp, qq)));
  kb_if(kb, less(kb, limit, f_norm(&kb->f, pq)));
  if (pq.im) {
    struct element by = turn_of(kb, pq);
    turn(kb, u, by, s.q, d->m);
    turn(kb, v, by, s.q, d->n);
    pq = e_now(kb, f_norm(&kb->f, pq));
  }
  struct rotation r = rotation_of(kb, e_sub(kb, qq, pp), pq);
  rotate(kb, u, r, s.p, s.q, d->m);
  rotate(kb, v, r, s.p, s.q, d->n);
  kb_set(kb, s.rotated, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_close(kb, 1);
  sweep_end(kb);
}

/* Columns of u that have no length (beyond rounding) become unit vectors orthogonal to those before: the axis that these cover least,
 * less its parts along them (twice, for the rounding). */
static void complete_column(struct kb *kb, const struct svd *d, const struct matrix *u, expr_id j) {
  struct accumulator least = acc_begin(kb, num(kb, INFINITY));
  uint32_t axis = kb_local(kb, kb_int(kb, 0));
  expr_id i = kb_for_dim(kb, LOOP_SEQ, d->m);
  struct accumulator covered = acc_begin(kb, num(kb, 0));
  expr_id l = kb_for(kb, LOOP_SEQ, j);
  struct element part_of_axis = matrix_get(u, i, l);
  acc_add(kb, &covered, f_real(e_mul(kb, part_of_axis, f_conj(&kb->f, part_of_axis))));
  kb_close(kb, 1);
  expr_id lower = less(kb, acc_get(kb, &covered), acc_get(kb, &least));
  kb_set(kb, axis, expr_select(kb->k, lower, i, kb_get(kb, axis)));
  acc_set(kb, &least, f_select(&kb->f, real_element(lower), acc_get(kb, &covered), acc_get(kb, &least)));
  kb_close(kb, 1);
  i = kb_for_dim(kb, LOOP_SEQ, d->m);
  struct element on_axis = real_element(expr_binary(kb->k, SCALAR_EQ, i, kb_get(kb, axis)));
  matrix_put(u, i, j, f_select(&kb->f, on_axis, num(kb, 1), num(kb, 0)));
  kb_close(kb, 1);
  kb_for(kb, LOOP_SEQ, kb_int(kb, 2));
  l = kb_for(kb, LOOP_SEQ, j);
  struct element part = column_product(kb, u, d->m, l, j);
  i = kb_for_dim(kb, LOOP_SEQ, d->m);
  matrix_put(u, i, j, e_sub(kb, matrix_get(u, i, j), e_mul(kb, part, matrix_get(u, i, l))));
  kb_close(kb, 3);
  struct element length = e_now(kb, un(kb, SCALAR_SQRT, column_square(kb, u, d->m, j)));
  i = kb_for_dim(kb, LOOP_SEQ, d->m);
  matrix_put(u, i, j, e_div(kb, matrix_get(u, i, j), length));
  kb_close(kb, 1);
}

static void normalize_columns(struct kb *kb, const struct svd *d, const struct matrix *u) {
  expr_id j = kb_for_dim(kb, LOOP_SEQ, d->left), count = kb_dim(kb, d->n);
  struct accumulator length = acc_begin(kb, num(kb, 0));
  kb_if(kb, kb_lt(kb, j, count));
  acc_set(kb, &length, value_at(kb, d->s, u, kb_clamp(kb, j, count)));
  kb_close(kb, 1);
  struct element first = value_at(kb, d->s, u, kb_int(kb, 0));
  kb_if(kb, less(kb, e_mul(kb, first, num(kb, 1e-15)), acc_get(kb, &length)));
  expr_id i = kb_for_dim(kb, LOOP_SEQ, d->m);
  matrix_put(u, i, j, e_div(kb, matrix_get(u, i, j), acc_get(kb, &length)));
  kb_close(kb, 1);
  kb_else(kb);
  complete_column(kb, d, u, j);
  kb_close(kb, 2);
}

static status svd_begin(struct op_call *c, const struct flow_value *x, bool vectors, bool full, struct svd *d) {
  if (x->rank < 2)
    return fail(INVALID_ARGUMENT, "input must be a matrix or a batch of them: %s", op_shape_text(c, x->rank, x->dims));
  struct dim_table *t = op_dims(c);
  dim rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  d->rank = x->rank;
  d->vectors = vectors;
  d->wide = wide_dtype(x->dtype);
  d->turned = dim_less(t, rows, columns) == 1;
  d->m = d->turned ? columns : rows;
  d->n = d->turned ? rows : columns;
  d->known = dim_less(t, d->m, d->n) == 0;
  d->is_square = dim_equal(t, d->m, d->n) == 1;
  if (d->known && x->dtype == DTYPE_COMPLEX64)
    d->wide = x->dtype; /* phases depend on the number of rotations, and so on the precision */
  d->left = full ? d->m : dim_min(t, d->m, d->n);
  memcpy(d->s_dims, x->dims, sizeof d->s_dims);
  memcpy(d->u_dims, x->dims, sizeof d->u_dims);
  memcpy(d->v_dims, x->dims, sizeof d->v_dims);
  d->s_dims[x->rank - 2] = d->n;
  d->u_dims[x->rank - 2] = d->m;
  d->u_dims[x->rank - 1] = dim_max(t, d->n, d->left);
  d->v_dims[x->rank - 2] = d->v_dims[x->rank - 1] = d->n;
  return OK;
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

/* The first elements of the last axis, as the output's dtype. */
static status output_first(struct op_call *c, uint32_t output, value_id wide, dim count) {
  struct flow_value x = *op_value(c, wide);
  x.dims[x.rank - 1] = count;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, wide), o = kb_out(&kb, op_output_dtype(c, output), x.rank, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  store_as(&kb, o, at, kb_load(&kb, a, at));
  kb_close(&kb, x.rank);
  op_set_output(c, output, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- from both sides, where the sizes are known ---- */

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
    set_identity(kb, u, d->n);
    set_identity(kb, v, d->n);
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

/* All of it: one kernel; the parts are still as wide as the buffers. */
static status svd_kernel(struct op_call *c, value_id in, const struct flow_value *x, struct svd *d, value_id parts[3]) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  uint32_t a = kb_in(&kb, in);
  d->s = kb_out(&kb, DTYPE_DOUBLE, x->rank - 1, d->s_dims);
  d->u = kb_out(&kb, d->wide, x->rank, d->u_dims);
  d->v = kb_out(&kb, d->wide, x->rank, d->v_dims);
  if (d->known)
    two_sided_buffers(&kb, d);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x->rank - 2, x->dims, at);
  struct matrix from = matrix_of(&kb, a, at), u = matrix_of(&kb, d->u, at), v = matrix_of(&kb, d->v, at);
  struct matrix given = d->known && !d->is_square ? matrix_of(&kb, d->small, at) : u;
  struct element largest = svd_copy(&kb, d, &from, &given);
  kb_if(&kb, less(&kb, largest, num(&kb, INFINITY)));
  if (d->known) {
    two_sided(&kb, d, &given, &u, &v, at);
  } else {
    set_identity(&kb, &v, d->n);
    orthogonalize(&kb, d, &u, &v);
    expr_id j = kb_for_dim(&kb, LOOP_SEQ, d->n);
    value_put(&kb, d->s, &u, j, un(&kb, SCALAR_SQRT, column_square(&kb, &u, d->m, j)));
    kb_close(&kb, 1);
  }
  sort_values(&kb, &(struct sorting){.values = d->s, .n = d->n, .descending = true, .columns = {&u, &v}, .rows = {d->m, d->n}});
  if (!d->known)
    normalize_columns(&kb, d, &u);
  kb_else(&kb);
  fill_nan(&kb, d, &u, &v);
  kb_close(&kb, x->rank - 1);
  parts[0] = kb_value(&kb, d->s);
  parts[1] = kb_value(&kb, d->u);
  parts[2] = kb_value(&kb, d->v);
  return kb_finish(&kb);
}

status svd_factor(struct op_call *c, value_id in, struct svd_parts *out) {
  struct flow_value x = *op_value(c, in);
  struct svd d = {0};
  value_id parts[3];
  TRY(svd_begin(c, &x, true, false, &d));
  TRY(svd_kernel(c, in, &x, &d, parts));
  *out = (struct svd_parts){parts[0], parts[d.turned ? 2 : 1], parts[d.turned ? 1 : 2], d.left};
  return OK;
}

status build_svd(struct op_call *c) {
  value_id in, parts[3];
  struct svd d = {0};
  TRY(op_input(c, 0, &in));
  struct flow_value x = *op_value(c, in);
  bool vectors = node_attr_int(c->node, "compute_uv", 1), full = vectors && node_attr_int(c->node, "full_matrices", 0);
  TRY(svd_begin(c, &x, vectors, full, &d));
  TRY(svd_kernel(c, in, &x, &d, parts));
  dim values = dim_min(op_dims(c), d.m, d.n);
  TRY(output_first(c, 0, parts[0], values));
  if (vectors) {
    TRY(output_first(c, d.turned ? 2 : 1, parts[1], d.left));
    return output_first(c, d.turned ? 1 : 2, parts[2], full ? d.n : values);
  }
  op_set_output(c, 1, no_vectors(c, op_output_dtype(c, 1)));
  op_set_output(c, 2, no_vectors(c, op_output_dtype(c, 2)));
  return OK;
}
