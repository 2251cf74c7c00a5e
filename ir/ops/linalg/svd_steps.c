/* svd_steps.c: singular values through a bidiagonal form (bidiagonal.h). The longer side's vectors stand for the columns, whichever side
 * that is: of a matrix of fewer rows than columns its adjoint is taken. Computed in double, on elements over the largest of them. */
#include <math.h>

#include "ir/ops/linalg/bidiagonal.h"
#include "ir/ops/linalg/svd.h"

struct svd {
  struct kb *kb;
  struct flow_value x;
  struct svd_wish wish;
  enum dtype wide;
  dim m, n;                                 /* the longer and the shorter side */
  dim rows;                                 /* long vectors that are wished for */
  int turned;                               /* fewer rows than columns: 1, 0, or -1 where only the step knows */
  uint32_t values, vectors[2];              /* buffers: n, and what is wished for of rows and of columns */
  uint32_t columns, right, tau, sums, band; /* those of struct bidiagonal */
  uint32_t long_vectors, short_vectors;     /* as rows */
  struct sweeps sweeps;
};

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_DOUBLE, v); }

static void matrix_dims(const struct svd *d, dim rows, dim columns, dim *out) {
  memcpy(out, d->x.dims, sizeof *out * LIMIT_RANK);
  out[d->x.rank - 2] = rows;
  out[d->x.rank - 1] = columns;
}
static uint32_t own_matrix(const struct svd *d, enum dtype dtype, dim rows, dim columns) {
  dim dims[LIMIT_RANK];
  matrix_dims(d, rows, columns, dims);
  return kb_scratch(d->kb, dtype, d->x.rank, dims);
}
/* The vectors of one side as columns: `side` is 0 for rows, 1 for columns. */
static uint32_t side_vectors(const struct svd *d, int side) {
  dim dims[LIMIT_RANK], size = d->x.dims[d->x.rank - 2 + side];
  matrix_dims(d, size, d->wish.full ? size : d->n, dims);
  return kb_out(d->kb, d->wish.dtype, d->x.rank, dims);
}
static void make_buffers(struct op_call *c, struct svd *d) {
  dim two = op_dim(c, 2), dims[LIMIT_RANK];
  matrix_dims(d, d->n, two, dims);
  d->values = kb_out(d->kb, DTYPE_DOUBLE, d->x.rank - 1, dims);
  d->columns = own_matrix(d, d->wide, d->n, matrix_row(c, d->m));
  d->right = own_matrix(d, d->wide, d->n, d->n);
  d->tau = own_matrix(d, d->wide, two, d->n);
  d->sums = own_matrix(d, d->wide, two, d->m);
  d->band = own_matrix(d, DTYPE_DOUBLE, two, d->n);
  if (!d->wish.vectors)
    return;
  for (int side = 0; side < 2; side++)
    d->vectors[side] = side_vectors(d, side);
  d->long_vectors = own_matrix(d, d->wide, d->rows, matrix_row(c, d->m));
  d->short_vectors = own_matrix(d, d->wide, d->n, matrix_row(c, d->n));
  sweeps_create(d->kb, DTYPE_DOUBLE, d->x.rank, d->x.dims, d->n, 2, &d->sweeps);
}

/* Whether the matrix has fewer rows than columns; a constant where that is known. */
static expr_id is_turned(struct kb *kb, const struct svd *d) {
  return d->turned >= 0 ? expr_int(kb->k, DTYPE_BOOL, d->turned)
                        : kb_lt(kb, kb_dim(kb, d->x.dims[d->x.rank - 2]), kb_dim(kb, d->x.dims[d->x.rank - 1]));
}

/* Gives the size of the largest element. */
static struct element largest_of(const struct svd *d, const struct matrix *from) {
  struct kb *kb = d->kb;
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for_dim(kb, LOOP_RED, d->x.dims[d->x.rank - 2]), j = kb_for_dim(kb, LOOP_RED, d->x.dims[d->x.rank - 1]);
  struct element size = f_norm(&kb->f, f_cast(&kb->f, d->wide, matrix_get(from, i, j)));
  acc_set(kb, &largest, f_binary(&kb->f, SCALAR_MAX, acc_get(kb, &largest), size));
  kb_close(kb, 2);
  return acc_get(kb, &largest);
}

/* The longer side's vectors as rows, over `scale`. */
static void copy_columns(const struct svd *d, const struct matrix *from, const struct matrix *to, struct element scale) {
  struct kb *kb = d->kb;
  for (int turned = 0; turned < 2; turned++) {
    if (d->turned == !turned)
      continue;
    kb_if(kb, turned ? is_turned(kb, d) : expr_unary(kb->k, SCALAR_NOT, is_turned(kb, d)));
    expr_id j = kb_for_dim(kb, LOOP_PAR, d->n), i = kb_for_dim(kb, LOOP_PAR, d->m);
    struct element e = turned ? f_conj(&kb->f, matrix_get(from, j, i)) : matrix_get(from, i, j);
    matrix_put(to, j, i, e_div(kb, f_cast(&kb->f, d->wide, e), scale));
    kb_close(kb, 3);
  }
}

static void factor(struct svd *d, const struct bidiagonal *b, const expr_id *batch) {
  struct kb *kb = d->kb;
  bidiagonal_reduce(kb, b);
  if (d->wish.vectors) {
    struct matrix u = matrix_of(kb, d->long_vectors, batch), v = matrix_of(kb, d->short_vectors, batch);
    bidiagonal_left(kb, b, &u, kb_dim(kb, d->rows));
    bidiagonal_right(kb, b, &v);
    sweeps_begin(&d->sweeps, batch);
    d->sweeps.is_acute = true;
    sweeps_rotate(&d->sweeps, &u, b->m);
    sweeps_rotate(&d->sweeps, &v, b->n);
  }
  bidiagonal_diagonalize(kb, &b->band, b->n, &d->sweeps);
}

static void put_value(const struct svd *d, expr_id *at, expr_id i, struct element e) {
  at[d->x.rank - 2] = i;
  kb_store(d->kb, d->values, at, e);
}
/* What is not finite has no singular values: NaN everywhere. */
static void fill_nan(const struct svd *d, expr_id *at) {
  struct kb *kb = d->kb;
  put_value(d, at, kb_for_dim(kb, LOOP_PAR, d->n), num(kb, NAN));
  kb_close(kb, 1);
  for (int side = 0; side < 2 && d->wish.vectors; side++) {
    struct matrix m = matrix_of(kb, d->vectors[side], at);
    dim size = d->x.dims[d->x.rank - 2 + side];
    expr_id i = kb_for_dim(kb, LOOP_PAR, size), j = kb_for_dim(kb, LOOP_PAR, d->wish.full ? size : d->n);
    matrix_put(&m, i, j, f_const_as(&kb->f, d->wish.dtype, NAN));
    kb_close(kb, 2);
  }
}

/* The vectors of one side, which are columns now: long ones are those of rows, unless there are fewer rows. */
static void put_vectors(const struct svd *d, int side, const expr_id *batch) {
  struct kb *kb = d->kb;
  struct matrix to = matrix_of(kb, d->vectors[side], batch);
  dim size = d->x.dims[d->x.rank - 2 + side], count = d->wish.full ? size : d->n;
  for (int turned = 0; turned < 2; turned++) {
    if (d->turned == !turned)
      continue;
    struct matrix from = matrix_of(kb, turned == side ? d->long_vectors : d->short_vectors, batch);
    kb_if(kb, turned ? is_turned(kb, d) : expr_unary(kb->k, SCALAR_NOT, is_turned(kb, d)));
    expr_id i = kb_for_dim(kb, LOOP_SEQ, size), j = kb_for_dim(kb, LOOP_SEQ, count);
    matrix_put(&to, i, j, f_cast(&kb->f, d->wish.dtype, matrix_get(&from, j, i)));
    kb_close(kb, 3);
  }
}

static status run(struct op_call *c, value_id in, struct svd *d, struct svd_parts *out) {
  struct kb kb;
  kb_begin(&kb, c, d->wide);
  d->kb = &kb;
  uint32_t a = kb_in(&kb, in);
  make_buffers(c, d);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, d->x.rank - 2, d->x.dims, at);
  struct matrix from = matrix_of(&kb, a, at);
  struct bidiagonal b = {.columns = matrix_of(&kb, d->columns, at),
                         .right = matrix_of(&kb, d->right, at),
                         .tau = matrix_of(&kb, d->tau, at),
                         .sums = matrix_of(&kb, d->sums, at),
                         .band = matrix_of(&kb, d->band, at),
                         .m = kb_dim(&kb, d->m),
                         .n = kb_dim(&kb, d->n)};
  struct element largest = largest_of(d, &from);
  kb_if(&kb, f_binary(&kb.f, SCALAR_LT, largest, num(&kb, INFINITY)).re);
  struct element nothing = f_binary(&kb.f, SCALAR_EQ, largest, num(&kb, 0)), scale = f_select(&kb.f, nothing, num(&kb, 1), largest);
  scale = e_now(&kb, scale);
  copy_columns(d, &from, &b.columns, scale);
  factor(d, &b, at);
  expr_id i = kb_for(&kb, LOOP_PAR, b.n);
  put_value(d, at, i, e_mul(&kb, matrix_get(&b.band, kb_int(&kb, 0), i), scale));
  kb_close(&kb, 1);
  for (int side = 0; side < 2 && d->wish.vectors; side++)
    put_vectors(d, side, at);
  kb_else(&kb);
  fill_nan(d, at);
  kb_close(&kb, d->x.rank - 1);
  *out = (struct svd_parts){.s = kb_value(&kb, d->values), .count = d->n};
  if (d->wish.vectors) {
    out->u = kb_value(&kb, d->vectors[0]);
    out->v = kb_value(&kb, d->vectors[1]);
  }
  return kb_finish(&kb);
}

status svd_by_steps(struct op_call *c, value_id in, const struct svd_wish *wish, struct svd_parts *out) {
  struct svd d = {.x = *op_value(c, in), .wish = *wish};
  struct dim_table *t = op_dims(c);
  dim rows = d.x.dims[d.x.rank - 2], columns = d.x.dims[d.x.rank - 1];
  d.wide = wide_dtype(d.x.dtype);
  d.m = dim_max(t, rows, columns);
  d.n = dim_min(t, rows, columns);
  d.turned = dim_less(t, rows, columns);
  d.rows = wish->full ? d.m : d.n;
  return run(c, in, &d, out);
}
