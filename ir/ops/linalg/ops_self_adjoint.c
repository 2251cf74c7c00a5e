/* ops_self_adjoint.c: eigenvalues and vectors of self-adjoint matrices: a tridiagonal form by reflections (tridiagonal.h), then QR steps
 * with Wilkinson's shift. Precision, steps, scale and the test for elements that are as good as 0 are Eigen's, and so are the signs of the
 * vectors, which depend on the number of steps. */
#include <float.h>
#include <math.h>

#include "ir/ops/arrange.h"
#include "ir/ops/linalg/sweeps.h"
#include "ir/ops/linalg/tridiagonal.h"
#include "ir/ops/part.h"

#define STEPS_FOR_EACH 30 /* QR steps for each eigenvalue, on the average, before it gives up */

struct eigen {
  struct kb *kb;
  struct matrix band;    /* [2, n], real: the diagonal, and what is below it */
  struct sweeps vectors; /* as rows; none where nobody asks for them */
  expr_id n;
};

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, dtype_real(kb->f.dtype), v); }
static bool is_double(const struct kb *kb) { return dtype_real(kb->f.dtype) == DTYPE_DOUBLE; }
static struct element size_of(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_ABS, e); }
/* Beside a matrix whose largest element is 1, less than this is nothing; its square is a normal number. */
static double least(const struct kb *kb) { return is_double(kb) ? 1e-140 : 1e-15; }
static expr_id is_zero(struct kb *kb, struct element e) { return f_binary(&kb->f, SCALAR_EQ, e, num(kb, 0)).re; }

/* Rows of the band. */
#define DIAGONAL 0
#define BELOW 1
static struct element get(const struct eigen *t, int row, expr_id i) { return matrix_take(&t->band, kb_int(t->kb, row), i); }
static void put(const struct eigen *t, int row, expr_id i, struct element e) { matrix_put(&t->band, kb_int(t->kb, row), i, e); }

/* ---- one QR step on rows start .. end ---- */

/* The eigenvalue of the last 2 x 2 block that is nearer to its last element. */
static struct element shift_of(const struct eigen *t, expr_id end) {
  struct kb *kb = t->kb;
  struct formula *f = &kb->f;
  expr_id before = kb_sub(kb, end, kb_int(kb, 1));
  struct element last = get(t, DIAGONAL, end), e = get(t, BELOW, before), size = size_of(kb, e);
  struct element td = e_now(kb, e_mul(kb, e_sub(kb, get(t, DIAGONAL, before), last), num(kb, 0.5)));
  struct element h = e_now(kb, f_norm(f, (struct element){td.re, e.re})),
                 signed_h = f_select(f, real_element(e_lt(kb, num(kb, 0), td)), h, f_unary(f, SCALAR_NEG, h));
  struct element part = e_div(kb, e, e_div(kb, e_add(kb, td, signed_h), e));
  struct element none = real_element(is_zero(kb, e)), flat = real_element(is_zero(kb, td));
  return e_now(kb, e_sub(kb, last, f_select(f, flat, size, f_select(f, none, num(kb, 0), part))));
}

/* What waits between the turns of a step: the pair that the next rotation turns, and the element of the diagonal where it does, with
 * the one below. */
struct chase {
  struct accumulator x, z, d, e;
};

/* Rotates rows k and k + 1, and columns. */
static void rotate(const struct eigen *t, const struct chase *w, struct element length, expr_id start, expr_id end, expr_id k) {
  struct kb *kb = t->kb;
  expr_id one = kb_int(kb, 1), next = kb_add(kb, k, one);
  struct element x = acc_get(kb, &w->x), z = acc_get(kb, &w->z), d = acc_get(kb, &w->d), e = acc_get(kb, &w->e),
                 d2 = get(t, DIAGONAL, next);
  struct element c = e_now(kb, e_div(kb, x, length)), s = e_now(kb, e_div(kb, f_unary(&kb->f, SCALAR_NEG, z), length));
  kb_if(kb, kb_lt(kb, start, k));
  expr_id before = kb_sub(kb, k, one);
  put(t, BELOW, before, e_sub(kb, e_mul(kb, c, get(t, BELOW, before)), e_mul(kb, s, z)));
  kb_close(kb, 1);
  sweep_put(&t->vectors, 0, k, c, e_now(kb, f_unary(&kb->f, SCALAR_NEG, s)));
  struct element sd = e_now(kb, e_add(kb, e_mul(kb, s, d), e_mul(kb, c, e))), dn = e_now(kb, e_add(kb, e_mul(kb, s, e), e_mul(kb, c, d2)));
  struct element upper = e_sub(kb, e_mul(kb, c, d), e_mul(kb, s, e)), lower = e_sub(kb, e_mul(kb, c, e), e_mul(kb, s, d2));
  put(t, DIAGONAL, k, e_sub(kb, e_mul(kb, c, upper), e_mul(kb, s, lower)));
  acc_set(kb, &w->d, e_add(kb, e_mul(kb, s, sd), e_mul(kb, c, dn)));
  put(t, DIAGONAL, next, acc_get(kb, &w->d));
  acc_set(kb, &w->x, e_sub(kb, e_mul(kb, c, sd), e_mul(kb, s, dn)));
  put(t, BELOW, k, acc_get(kb, &w->x));
  kb_if(kb, kb_lt(kb, next, end));
  struct element following = get(t, BELOW, next);
  acc_set(kb, &w->z, f_unary(&kb->f, SCALAR_NEG, e_mul(kb, s, following)));
  acc_set(kb, &w->e, e_mul(kb, c, following));
  put(t, BELOW, next, acc_get(kb, &w->e));
  kb_close(kb, 1);
}

static void qr_step(const struct eigen *t, expr_id start, expr_id end) {
  struct kb *kb = t->kb;
  struct chase w = {.d = acc_begin(kb, get(t, DIAGONAL, start)), .e = acc_begin(kb, get(t, BELOW, start))};
  w.x = acc_begin(kb, e_sub(kb, acc_get(kb, &w.d), shift_of(t, end)));
  w.z = acc_begin(kb, acc_get(kb, &w.e));
  sweep_begin(&t->vectors, start, kb_sub(kb, end, start));
  expr_id k = kb_add(kb, start, kb_for(kb, LOOP_SEQ, kb_sub(kb, end, start)));
  struct element x = acc_get(kb, &w.x), z = acc_get(kb, &w.z), limit = num(kb, least(kb) * least(kb));
  struct element square = e_now(kb, e_add(kb, e_mul(kb, x, x), e_mul(kb, z, z)));
  kb_if(kb, expr_binary(kb->k, SCALAR_OR, is_zero(kb, z), e_lt(kb, square, limit))); /* nothing is left to chase */
  sweep_put(&t->vectors, 0, k, num(kb, 1), num(kb, 0));
  kb_else(kb);
  rotate(t, &w, e_now(kb, f_unary(&kb->f, SCALAR_SQRT, square)), start, end, k);
  kb_close(kb, 2);
  sweep_end(&t->vectors);
}

/* ---- all steps ---- */

static void drop_small(const struct eigen *t, expr_id start, expr_id end) {
  struct kb *kb = t->kb;
  expr_id i = kb_add(kb, start, kb_for(kb, LOOP_PAR, kb_sub(kb, end, start))), next = kb_add(kb, i, kb_int(kb, 1));
  struct element e = get(t, BELOW, i), scaled = e_mul(kb, e, num(kb, is_double(kb) ? 1 / DBL_EPSILON : 1 / FLT_EPSILON));
  struct element around = e_add(kb, size_of(kb, get(t, DIAGONAL, i)), size_of(kb, get(t, DIAGONAL, next)));
  expr_id small = f_binary(&kb->f, SCALAR_LE, e_mul(kb, scaled, scaled), around).re;
  small = expr_binary(kb->k, SCALAR_OR, e_lt(kb, size_of(kb, e), num(kb, least(kb))), small);
  put(t, BELOW, i, f_select(&kb->f, real_element(small), num(kb, 0), e));
  kb_close(kb, 1);
}

/* Moves a bound down while the element below it is 0 (or is not). */
static void move_down(const struct eigen *t, uint32_t bound, bool over_zeros) {
  struct kb *kb = t->kb;
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1);
  uint32_t more = kb_local(kb, kb_lt(kb, zero, kb_get(kb, bound)));
  kb_while(kb, kb_get(kb, more));
  expr_id nothing = is_zero(kb, get(t, BELOW, kb_sub(kb, kb_get(kb, bound), one)));
  kb_set(kb, more, over_zeros ? nothing : expr_unary(kb->k, SCALAR_NOT, nothing));
  kb_if(kb, kb_get(kb, more));
  kb_set(kb, bound, kb_sub(kb, kb_get(kb, bound), one));
  kb_set(kb, more, kb_lt(kb, zero, kb_get(kb, bound)));
  kb_close(kb, 2);
}

/* Gives whether it came to an end. */
static expr_id make_diagonal(const struct eigen *t) {
  struct kb *kb = t->kb;
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1), most = kb_mul(kb, t->n, kb_int(kb, STEPS_FOR_EACH));
  uint32_t end = kb_local(kb, kb_sub(kb, t->n, one)), start = kb_local(kb, zero), steps = kb_local(kb, zero);
  kb_while(kb, kb_and(kb, kb_lt(kb, zero, kb_get(kb, end)), expr_binary(kb->k, SCALAR_LE, kb_get(kb, steps), most)));
  drop_small(t, kb_get(kb, kb_local(kb, kb_get(kb, start))), kb_get(kb, kb_local(kb, kb_get(kb, end))));
  move_down(t, end, true);
  kb_if(kb, kb_lt(kb, zero, kb_get(kb, end)));
  kb_set(kb, steps, kb_add(kb, kb_get(kb, steps), one));
  kb_set(kb, start, kb_sub(kb, kb_get(kb, end), one));
  move_down(t, start, false);
  qr_step(t, kb_get(kb, kb_local(kb, kb_get(kb, start))), kb_get(kb, kb_local(kb, kb_get(kb, end))));
  kb_close(kb, 2);
  return kb_lt(kb, kb_get(kb, end), one);
}

/* In ascending order. */
static void sort_values(const struct eigen *t) {
  struct kb *kb = t->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, t->n);
  uint32_t best = kb_local(kb, i);
  expr_id j = kb_add(kb, i, kb_for(kb, LOOP_SEQ, kb_sub(kb, t->n, i))), held = kb_get(kb, best);
  kb_set(kb, best, expr_select(kb->k, e_lt(kb, get(t, DIAGONAL, j), get(t, DIAGONAL, held)), j, held));
  kb_close(kb, 1);
  expr_id other = kb_get(kb, best);
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, i, other));
  struct element a = get(t, DIAGONAL, i), b = get(t, DIAGONAL, other);
  put(t, DIAGONAL, i, b);
  put(t, DIAGONAL, other, a);
  sweeps_exchange(&t->vectors, i, other);
  kb_close(kb, 2);
}

/* ---- the op: only the lower triangle is read ---- */

/* The whole matrix from its lower triangle, over its largest element, which it gives. */
static struct element copy_scaled(struct kb *kb, const struct matrix *from, const struct matrix *m, expr_id n) {
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_RED, n), j = kb_for(kb, LOOP_RED, kb_add(kb, i, kb_int(kb, 1)));
  struct element e = f_cast(&kb->f, kb->f.dtype, matrix_get(from, i, j));
  acc_set(kb, &largest, f_binary(&kb->f, SCALAR_MAX, acc_get(kb, &largest), f_norm(&kb->f, e)));
  kb_close(kb, 2);
  struct element top = acc_get(kb, &largest), scale = e_now(kb, f_select(&kb->f, real_element(is_zero(kb, top)), num(kb, 1), top));
  i = kb_for(kb, LOOP_SEQ, n);
  j = kb_for(kb, LOOP_SEQ, kb_add(kb, i, kb_int(kb, 1)));
  e = e_now(kb, e_div(kb, f_cast(&kb->f, kb->f.dtype, matrix_get(from, i, j)), scale));
  struct element diagonal = real_element(expr_binary(kb->k, SCALAR_EQ, i, j));
  e = e.im ? f_select(&kb->f, diagonal, f_cast(&kb->f, kb->f.dtype, f_real(e)), e) : e;
  matrix_put(m, i, j, e);
  matrix_put(m, j, i, f_conj(&kb->f, e));
  kb_close(kb, 2);
  return scale;
}

static const char unsuccessful[] = "Self-adjoint eigen decomposition was not successful. The input might not be valid.";

/* What the kernel works on: w is A, over its scale. */
struct work {
  struct tridiagonal t;
  struct matrix rows; /* the vectors */
};
static struct work make_buffers(struct kb *kb, const struct flow_value *x, bool has_vectors, struct sweeps *vectors) {
  struct op_call *c = kb->c;
  dim n = x->dims[x->rank - 1], dims[LIMIT_RANK];
  enum dtype own = kb->f.dtype;
  struct work w;
  memcpy(dims, x->dims, sizeof dims);
  dims[x->rank - 1] = matrix_row(c, n);
  w.t.a.buffer = kb_scratch(kb, own, x->rank, dims);
  w.t.vectors.buffer = kb_scratch(kb, own, x->rank, dims);
  w.rows.buffer = has_vectors ? kb_scratch(kb, own, x->rank, dims) : 0;
  dims[x->rank - 1] = n;
  dims[x->rank - 2] = op_dim(c, 1);
  w.t.tau.buffer = kb_scratch(kb, own, x->rank, dims);
  dims[x->rank - 2] = op_dim(c, 2);
  w.t.sums.buffer = kb_scratch(kb, own, x->rank, dims);
  w.t.band.buffer = kb_scratch(kb, dtype_real(own), x->rank, dims);
  *vectors = (struct sweeps){0};
  if (has_vectors)
    sweeps_create(kb, dtype_real(own), x->rank, x->dims, n, 1, vectors);
  return w;
}
/* Inside the loops over batches. */
static void enter_batch(struct kb *kb, struct work *w, const expr_id *batch) {
  struct matrix *all[] = {&w->t.a, &w->t.vectors, &w->t.tau, &w->t.sums, &w->t.band, &w->rows};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    *all[i] = matrix_of(kb, all[i]->buffer, batch);
}

/* Eigenvalues in the band's diagonal, vectors in the work's rows. */
static void decompose(struct kb *kb, struct work *w, struct sweeps *vectors, bool has_vectors, const expr_id *batch) {
  tridiagonal_reduce(kb, &w->t);
  if (has_vectors) {
    tridiagonal_collect(kb, &w->t, &w->rows);
    sweeps_begin(vectors, batch);
    sweeps_rotate(vectors, &w->rows, w->t.n);
  }
  struct eigen e = {.kb = kb, .band = w->t.band, .vectors = *vectors, .n = w->t.n};
  kb_check(kb, make_diagonal(&e), INVALID_ARGUMENT, unsuccessful, NO_EXPR, NO_EXPR);
  if (has_vectors)
    sweeps_apply(&e.vectors);
  sort_values(&e);
}

status build_self_adjoint_eig(struct op_call *c) {
  static const double zero[2];
  value_id v;
  struct flow_value x;
  TRY(op_input(c, 0, &v));
  TRY(matrix_square(c, v, &x));
  bool has_vectors = node_attr_int(c->node, "compute_v", 1);
  struct kb kb;
  struct sweeps vectors;
  kb_begin(&kb, c, x.dtype == DTYPE_HALF ? DTYPE_FLOAT : x.dtype);
  uint32_t a = kb_in(&kb, v), o = has_vectors ? kb_out(&kb, x.dtype, x.rank, x.dims) : 0, e = kb_out(&kb, x.dtype, x.rank - 1, x.dims);
  struct work w = make_buffers(&kb, &x, has_vectors, &vectors);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix from = matrix_of(&kb, a, at), to = matrix_of(&kb, o, at);
  enter_batch(&kb, &w, at);
  w.t.n = kb_dim(&kb, x.dims[x.rank - 1]);
  struct element scale = copy_scaled(&kb, &from, &w.t.a, w.t.n);
  kb_check(&kb, e_lt(&kb, scale, num(&kb, INFINITY)), INVALID_ARGUMENT, unsuccessful, NO_EXPR, NO_EXPR);
  decompose(&kb, &w, &vectors, has_vectors, at);
  expr_id i = at[x.rank - 2] = kb_for(&kb, LOOP_SEQ, w.t.n);
  store_as(&kb, e, at, e_mul(&kb, matrix_get(&w.t.band, kb_int(&kb, DIAGONAL), i), scale));
  kb_close(&kb, 1);
  if (has_vectors) {
    i = kb_for(&kb, LOOP_SEQ, w.t.n);
    expr_id j = kb_for(&kb, LOOP_SEQ, w.t.n);
    matrix_put(&to, i, j, f_cast(&kb.f, x.dtype, matrix_get(&w.rows, j, i)));
    kb_close(&kb, 2);
  }
  kb_close(&kb, x.rank - 2);
  op_set_output(c, 0, kb_value(&kb, e));
  op_set_output(c, 1, has_vectors ? kb_value(&kb, o) : op_constant(c, x.dtype, 0, NULL, zero));
  return kb_finish(&kb);
}

/* The first version: the eigenvalues are a row above the eigenvectors. */
status build_self_adjoint_eig_packed(struct op_call *c) {
  struct bound parts[2];
  TRY(op_part_outputs(c, build_self_adjoint_eig, 1, c->in, 2, parts));
  struct flow_value v = *op_value(c, parts[1].value);
  dim dims[LIMIT_RANK];
  memcpy(dims, v.dims, sizeof dims);
  dims[v.rank - 2] = op_add(c, v.dims[v.rank - 2], op_dim(c, 1));
  struct kb kb;
  kb_begin(&kb, c, v.dtype);
  uint32_t e = kb_in(&kb, parts[0].value), vectors = kb_in(&kb, parts[1].value), out = kb_out(&kb, v.dtype, v.rank, dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK], to[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, v.rank, v.dims, at);
  memcpy(to, at, sizeof to);
  to[v.rank - 2] = kb_add(&kb, at[v.rank - 2], kb_int(&kb, 1));
  kb_store(&kb, out, to, kb_load(&kb, vectors, at));
  kb_close(&kb, v.rank);
  memcpy(dims, v.dims, sizeof dims);
  dims[v.rank - 2] = v.dims[v.rank - 1]; /* the values: all axes but the rows */
  kb_loops(&kb, LOOP_PAR, v.rank - 1, dims, from);
  memcpy(to, from, sizeof to);
  to[v.rank - 1] = from[v.rank - 2];
  to[v.rank - 2] = kb_int(&kb, 0);
  kb_store(&kb, out, to, kb_load(&kb, e, from));
  kb_close(&kb, v.rank - 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}
