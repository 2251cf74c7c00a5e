/* ops_self_adjoint.c: eigenvalues and vectors of self-adjoint matrices: a tridiagonal form by reflections, then QR steps with Wilkinson's
 * shift. Precision, steps, scale and the test for elements that are as good as 0 are Eigen's, and so are the signs of the vectors, which
 * depend on the number of steps. */
#include <float.h>
#include <math.h>

#include "ir/ops/arrange.h"
#include "ir/ops/linalg/schur.h"
#include "ir/ops/part.h"

#define STEPS_FOR_EACH 30 /* QR steps for each eigenvalue, on the average, before it gives up */

struct tridiagonal {
  struct kb *kb;
  struct matrix q;          /* the vectors, as rows while they are rotated */
  bool has_vectors;         /* they are asked for */
  uint32_t diagonal, below; /* [..., n] */
  expr_id n;
};

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, dtype_real(kb->f.dtype), v); }
static bool is_double(const struct kb *kb) { return dtype_real(kb->f.dtype) == DTYPE_DOUBLE; }
static expr_id less(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_LT, a, b).re; }
static struct element size_of(struct kb *kb, struct element e) { return f_unary(&kb->f, SCALAR_ABS, e); }
static expr_id is_zero(struct kb *kb, struct element e) { return f_binary(&kb->f, SCALAR_EQ, e, num(kb, 0)).re; }

static struct element get(const struct tridiagonal *t, uint32_t buffer, expr_id i) {
  expr_id at[LIMIT_RANK];
  memcpy(at, t->q.batch, sizeof *at * (size_t)t->q.batch_rank);
  at[t->q.batch_rank] = i;
  return e_now(t->kb, kb_load(t->kb, buffer, at));
}
static void put(const struct tridiagonal *t, uint32_t buffer, expr_id i, struct element e) {
  expr_id at[LIMIT_RANK];
  memcpy(at, t->q.batch, sizeof *at * (size_t)t->q.batch_rank);
  at[t->q.batch_rank] = i;
  kb_store(t->kb, buffer, at, e);
}

/* ---- one QR step on rows start .. end ---- */

/* The eigenvalue of the last 2 x 2 block that is nearer to its last element. */
static struct element shift_of(const struct tridiagonal *t, expr_id end) {
  struct kb *kb = t->kb;
  struct formula *f = &kb->f;
  expr_id before = kb_sub(kb, end, kb_int(kb, 1));
  struct element last = get(t, t->diagonal, end), e = get(t, t->below, before), size = size_of(kb, e);
  struct element td = e_now(kb, e_mul(kb, e_sub(kb, get(t, t->diagonal, before), last), num(kb, 0.5)));
  struct element h = e_now(kb, f_norm(f, (struct element){td.re, e.re})),
                 signed_h = f_select(f, real_element(less(kb, num(kb, 0), td)), h, f_unary(f, SCALAR_NEG, h));
  struct element part = e_div(kb, e, e_div(kb, e_add(kb, td, signed_h), e));
  struct element none = real_element(is_zero(kb, e)), flat = real_element(is_zero(kb, td));
  return e_now(kb, e_sub(kb, last, f_select(f, flat, size, f_select(f, none, num(kb, 0), part))));
}

static void rotate_vectors(const struct tridiagonal *t, expr_id k, struct element c, struct element s) {
  struct kb *kb = t->kb;
  expr_id next = kb_add(kb, k, kb_int(kb, 1)), i = kb_for(kb, LOOP_PAR, t->n);
  struct element x = matrix_take(&t->q, k, i), y = matrix_take(&t->q, next, i);
  matrix_put(&t->q, k, i, e_sub(kb, e_mul(kb, c, x), e_mul(kb, s, y)));
  matrix_put(&t->q, next, i, e_add(kb, e_mul(kb, s, x), e_mul(kb, c, y)));
  kb_close(kb, 1);
}

static void qr_step(const struct tridiagonal *t, expr_id start, expr_id end) {
  struct kb *kb = t->kb;
  struct formula *f = &kb->f;
  expr_id one = kb_int(kb, 1);
  struct accumulator x = acc_begin(kb, e_sub(kb, get(t, t->diagonal, start), shift_of(t, end))), z = acc_begin(kb, get(t, t->below, start));
  expr_id k = kb_add(kb, start, kb_for(kb, LOOP_SEQ, kb_sub(kb, end, start))), next = kb_add(kb, k, one);
  kb_if(kb, expr_unary(kb->k, SCALAR_NOT, is_zero(kb, acc_get(kb, &z)))); /* nothing is left to chase */
  struct element p = acc_get(kb, &x), q = acc_get(kb, &z), h = e_now(kb, f_norm(f, (struct element){p.re, q.re}));
  struct element c = e_now(kb, e_div(kb, p, h)), s = e_now(kb, e_div(kb, f_unary(f, SCALAR_NEG, q), h));
  struct element d = get(t, t->diagonal, k), e = get(t, t->below, k), d2 = get(t, t->diagonal, next);
  struct element sd = e_now(kb, e_add(kb, e_mul(kb, s, d), e_mul(kb, c, e))), dn = e_now(kb, e_add(kb, e_mul(kb, s, e), e_mul(kb, c, d2)));
  struct element upper = e_sub(kb, e_mul(kb, c, d), e_mul(kb, s, e)), lower = e_sub(kb, e_mul(kb, c, e), e_mul(kb, s, d2));
  put(t, t->diagonal, k, e_sub(kb, e_mul(kb, c, upper), e_mul(kb, s, lower)));
  put(t, t->diagonal, next, e_add(kb, e_mul(kb, s, sd), e_mul(kb, c, dn)));
  struct element off = e_now(kb, e_sub(kb, e_mul(kb, c, sd), e_mul(kb, s, dn)));
  put(t, t->below, k, off);
  kb_if(kb, kb_lt(kb, start, k));
  expr_id before = kb_sub(kb, k, one);
  put(t, t->below, before, e_sub(kb, e_mul(kb, c, get(t, t->below, before)), e_mul(kb, s, q)));
  kb_close(kb, 1);
  if (t->has_vectors)
    rotate_vectors(t, k, c, s);
  acc_set(kb, &x, off);
  kb_if(kb, kb_lt(kb, next, end));
  struct element following = get(t, t->below, next);
  acc_set(kb, &z, f_unary(f, SCALAR_NEG, e_mul(kb, s, following)));
  put(t, t->below, next, e_mul(kb, c, following));
  kb_close(kb, 3);
}

/* ---- all steps ---- */

static void drop_small(const struct tridiagonal *t, expr_id start, expr_id end) {
  struct kb *kb = t->kb;
  expr_id i = kb_add(kb, start, kb_for(kb, LOOP_SEQ, kb_sub(kb, end, start))), next = kb_add(kb, i, kb_int(kb, 1));
  struct element e = get(t, t->below, i), scaled = e_mul(kb, e, num(kb, is_double(kb) ? 1 / DBL_EPSILON : 1 / FLT_EPSILON));
  struct element around = e_add(kb, size_of(kb, get(t, t->diagonal, i)), size_of(kb, get(t, t->diagonal, next)));
  expr_id small = f_binary(&kb->f, SCALAR_LE, e_mul(kb, scaled, scaled), around).re;
  kb_if(kb, expr_binary(kb->k, SCALAR_OR, less(kb, size_of(kb, e), num(kb, is_double(kb) ? DBL_MIN : FLT_MIN)), small));
  put(t, t->below, i, num(kb, 0));
  kb_close(kb, 2);
}

/* Moves a bound down while the element below it is 0 (or is not). */
static void move_down(const struct tridiagonal *t, uint32_t bound, bool over_zeros) {
  struct kb *kb = t->kb;
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1);
  uint32_t more = kb_local(kb, kb_lt(kb, zero, kb_get(kb, bound)));
  kb_while(kb, kb_get(kb, more));
  expr_id nothing = is_zero(kb, get(t, t->below, kb_sub(kb, kb_get(kb, bound), one)));
  kb_set(kb, more, over_zeros ? nothing : expr_unary(kb->k, SCALAR_NOT, nothing));
  kb_if(kb, kb_get(kb, more));
  kb_set(kb, bound, kb_sub(kb, kb_get(kb, bound), one));
  kb_set(kb, more, kb_lt(kb, zero, kb_get(kb, bound)));
  kb_close(kb, 2);
}

/* Gives whether it came to an end. */
static expr_id make_diagonal(const struct tridiagonal *t) {
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
static void sort_values(const struct tridiagonal *t) {
  struct kb *kb = t->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, t->n);
  uint32_t best = kb_local(kb, i);
  expr_id j = kb_add(kb, i, kb_for(kb, LOOP_SEQ, kb_sub(kb, t->n, i))), held = kb_get(kb, best);
  kb_set(kb, best, expr_select(kb->k, less(kb, get(t, t->diagonal, j), get(t, t->diagonal, held)), j, held));
  kb_close(kb, 1);
  expr_id other = kb_get(kb, best);
  kb_if(kb, expr_binary(kb->k, SCALAR_NE, i, other));
  struct element a = get(t, t->diagonal, i), b = get(t, t->diagonal, other);
  put(t, t->diagonal, i, b);
  put(t, t->diagonal, other, a);
  if (t->has_vectors) {
    expr_id k = kb_for(kb, LOOP_PAR, t->n);
    a = matrix_take(&t->q, i, k);
    b = matrix_take(&t->q, other, k);
    matrix_put(&t->q, i, k, b);
    matrix_put(&t->q, other, k, a);
    kb_close(kb, 1);
  }
  kb_close(kb, 2);
}

/* Columns become rows, or rows columns. */
static void transpose_vectors(const struct tridiagonal *t) {
  struct kb *kb = t->kb;
  expr_id i = kb_for(kb, LOOP_SEQ, t->n), j = kb_for(kb, LOOP_SEQ, i);
  struct element a = matrix_take(&t->q, i, j), b = matrix_take(&t->q, j, i);
  matrix_put(&t->q, i, j, b);
  matrix_put(&t->q, j, i, a);
  kb_close(kb, 2);
}

/* ---- the op: only the lower triangle is read ---- */

/* The whole matrix from its lower triangle, over its largest element, which it gives. */
static struct element copy_scaled(struct kb *kb, const struct matrix *from, const struct matrix *m, expr_id n) {
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, kb_add(kb, i, kb_int(kb, 1)));
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

status build_self_adjoint_eig(struct op_call *c) {
  value_id v, out;
  struct flow_value x;
  TRY(op_input(c, 0, &v));
  TRY(matrix_square(c, v, &x));
  enum dtype own = x.dtype == DTYPE_HALF ? DTYPE_FLOAT : x.dtype;
  struct kb kb;
  kb_begin(&kb, c, own);
  uint32_t a = kb_in(&kb, v), w = kb_out(&kb, own, x.rank, x.dims), vectors = kb_out(&kb, own, x.rank, x.dims);
  uint32_t e = kb_out(&kb, x.dtype, x.rank - 1, x.dims);
  expr_id at[LIMIT_RANK];
  struct tridiagonal t = {.kb = &kb, .n = kb_dim(&kb, x.dims[x.rank - 1]), .has_vectors = node_attr_int(c->node, "compute_v", 1)};
  t.diagonal = kb_out(&kb, dtype_real(own), x.rank - 1, x.dims);
  t.below = kb_out(&kb, dtype_real(own), x.rank - 1, x.dims);
  kb_loops(&kb, LOOP_PAR, x.rank - 2, x.dims, at);
  struct matrix from = matrix_of(&kb, a, at), m = matrix_of(&kb, w, at);
  t.q = matrix_of(&kb, vectors, at);
  struct element scale = copy_scaled(&kb, &from, &m, t.n);
  const char *text = "Self-adjoint eigen decomposition was not successful. The input might not be valid.";
  kb_check(&kb, less(&kb, scale, num(&kb, INFINITY)), INVALID_ARGUMENT, text, NO_EXPR, NO_EXPR);
  schur_hessenberg(&kb, &m, t.has_vectors ? &t.q : NULL, t.n);
  if (t.has_vectors)
    transpose_vectors(&t);
  expr_id i = kb_for(&kb, LOOP_SEQ, t.n), next = kb_clamp(&kb, kb_add(&kb, i, kb_int(&kb, 1)), t.n);
  put(&t, t.diagonal, i, f_real(matrix_get(&m, i, i)));
  put(&t, t.below, i, f_real(matrix_get(&m, next, i)));
  kb_close(&kb, 1);
  kb_check(&kb, make_diagonal(&t), INVALID_ARGUMENT, text, NO_EXPR, NO_EXPR);
  sort_values(&t);
  if (t.has_vectors)
    transpose_vectors(&t);
  i = at[x.rank - 2] = kb_for(&kb, LOOP_SEQ, t.n);
  store_as(&kb, e, at, e_mul(&kb, get(&t, t.diagonal, i), scale));
  kb_close(&kb, x.rank - 1);
  op_set_output(c, 0, kb_value(&kb, e));
  out = kb_value(&kb, vectors);
  TRY(kb_finish(&kb));
  if (t.has_vectors) {
    TRY(op_cast(c, out, x.dtype, &out));
  } else {
    static const double zero[2];
    out = op_constant(c, x.dtype, 0, NULL, zero);
  }
  op_set_output(c, 1, out);
  return OK;
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
