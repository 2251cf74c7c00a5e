/* ops_schur.c: what is done with Schur's form A = U T U*: eigenvalues and vectors of any square matrix, its square root (Bjoerck and
 * Hammarling's recurrence on T) and logarithm (inverse scaling and squaring: square roots until T is near 1, then an integral by
 * Gauss and Legendre). */
#include <float.h>
#include <math.h>

#include "ir/ops/linalg/real_schur.h"

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, dtype_real(kb->f.dtype), v); }
static struct element complex_num(struct kb *kb, double v) { return f_const_as(&kb->f, kb->f.dtype, v); }
static struct element epsilon(struct kb *kb) { return num(kb, dtype_real(kb->f.dtype) == DTYPE_DOUBLE ? DBL_EPSILON : FLT_EPSILON); }

/* One kernel's buffers: T, U and as many of their kind as an op needs. */
struct form {
  struct kb kb;
  value_id in;
  struct flow_value x;
  dim size;
  expr_id at[LIMIT_RANK], n;
  uint32_t from, t, u, work[2];
  uint32_t real_t, real_u; /* of real matrices: the real form, where eigenvalues are wanted in its order */
};
static status form_begin(struct op_call *c, struct form *s, enum dtype dtype, int work) {
  TRY(op_input(c, 0, &s->in));
  TRY(matrix_square(c, s->in, &s->x));
  s->size = s->x.dims[s->x.rank - 1];
  kb_begin(&s->kb, c, dtype);
  s->from = kb_in(&s->kb, s->in);
  s->t = kb_out(&s->kb, dtype, s->x.rank, s->x.dims);
  s->u = kb_out(&s->kb, dtype, s->x.rank, s->x.dims);
  for (int i = 0; i < work; i++)
    s->work[i] = kb_out(&s->kb, dtype, s->x.rank, s->x.dims);
  return OK;
}
/* The real form first, in matrices of its own: what Eigen does for real matrices. */
static expr_id form_factor_real(struct form *s) {
  struct kb *kb = &s->kb;
  enum dtype dtype = kb->f.dtype, real = dtype_real(dtype);
  struct matrix from = matrix_of(kb, s->from, s->at), real_t = matrix_of(kb, s->real_t, s->at), real_u = matrix_of(kb, s->real_u, s->at);
  struct matrix t = matrix_of(kb, s->t, s->at), u = matrix_of(kb, s->u, s->at);
  expr_id i = kb_for(kb, LOOP_SEQ, s->n), j = kb_for(kb, LOOP_SEQ, s->n);
  matrix_put(&real_t, i, j, f_cast(&kb->f, real, matrix_get(&from, i, j)));
  kb_close(kb, 2);
  kb->f.dtype = real;
  expr_id good = real_schur_factor(kb, &real_t, &real_u, s->n);
  kb->f.dtype = dtype;
  schur_of_real(kb, &real_t, &real_u, &t, &u, s->n);
  return good;
}
/* Inside the loops over the batch, which are closed by the caller. */
static expr_id form_factor(struct form *s, bool is_real) {
  struct kb *kb = &s->kb;
  kb_loops(kb, LOOP_PAR, s->x.rank - 2, s->x.dims, s->at);
  s->n = kb_dim(kb, s->size);
  if (is_real)
    return form_factor_real(s);
  struct matrix from = matrix_of(kb, s->from, s->at), t = matrix_of(kb, s->t, s->at), u = matrix_of(kb, s->u, s->at);
  expr_id i = kb_for(kb, LOOP_SEQ, s->n), j = kb_for(kb, LOOP_SEQ, s->n);
  matrix_put(&t, i, j, f_cast(&kb->f, kb->f.dtype, matrix_get(&from, i, j)));
  kb_close(kb, 2);
  return schur_factor(kb, &t, &u, s->n);
}

/* ---- eigenvalues ---- */

/* Element (i, k) of T's eigenvectors (upper triangular, ones on the diagonal), from the diagonal upwards; two equal eigenvalues are
 * taken as different by a rounding error of T. */
static void triangular_vectors(struct kb *kb, const struct matrix *t, const struct matrix *x, expr_id n) {
  struct accumulator square = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, n), j = kb_for(kb, LOOP_SEQ, n);
  struct element e = matrix_get(t, i, j);
  acc_add(kb, &square, f_real(e_mul(kb, e, f_conj(&kb->f, e))));
  matrix_put(x, i, j, f_select(&kb->f, real_element(expr_binary(kb->k, SCALAR_EQ, i, j)), complex_num(kb, 1), complex_num(kb, 0)));
  kb_close(kb, 2);
  struct element tiny = e_mul(kb, epsilon(kb), f_unary(&kb->f, SCALAR_SQRT, acc_get(kb, &square)));
  tiny = e_now(kb, f_binary(&kb->f, SCALAR_MAX, tiny, num(kb, FLT_MIN)));
  expr_id one = kb_int(kb, 1), k = kb_for(kb, LOOP_SEQ, n), step = kb_for(kb, LOOP_SEQ, k);
  i = kb_sub(kb, kb_sub(kb, k, one), step);
  struct accumulator sum = acc_begin(kb, f_unary(&kb->f, SCALAR_NEG, matrix_get(t, i, k)));
  j = kb_add(kb, kb_add(kb, i, one), kb_for(kb, LOOP_SEQ, step));
  acc_set(kb, &sum, e_sub(kb, acc_get(kb, &sum), e_mul(kb, matrix_get(t, i, j), matrix_get(x, j, k))));
  kb_close(kb, 1);
  struct element apart = e_now(kb, e_sub(kb, matrix_get(t, i, i), matrix_get(t, k, k)));
  struct element equal = f_binary(&kb->f, SCALAR_EQ, apart, complex_num(kb, 0));
  apart = f_select(&kb->f, equal, f_cast(&kb->f, kb->f.dtype, tiny), apart);
  matrix_put(x, i, k, e_div(kb, acc_get(kb, &sum), apart));
  kb_close(kb, 2);
}

/* v = U X, its columns of length 1 */
static void full_vectors(struct kb *kb, const struct matrix *u, const struct matrix *x, const struct matrix *v, expr_id n) {
  expr_id k = kb_for(kb, LOOP_SEQ, n), i = kb_for(kb, LOOP_SEQ, n);
  struct accumulator sum = acc_begin(kb, complex_num(kb, 0));
  expr_id j = kb_for(kb, LOOP_SEQ, kb_add(kb, k, kb_int(kb, 1)));
  acc_add(kb, &sum, e_mul(kb, matrix_get(u, i, j), matrix_get(x, j, k)));
  kb_close(kb, 1);
  matrix_put(v, i, k, acc_get(kb, &sum));
  kb_close(kb, 1);
  struct accumulator square = acc_begin(kb, num(kb, 0));
  i = kb_for(kb, LOOP_SEQ, n);
  struct element e = matrix_get(v, i, k);
  acc_add(kb, &square, f_real(e_mul(kb, e, f_conj(&kb->f, e))));
  kb_close(kb, 1);
  struct element length = e_now(kb, f_unary(&kb->f, SCALAR_SQRT, acc_get(kb, &square)));
  i = kb_for(kb, LOOP_SEQ, n);
  e = e_now(kb, e_div(kb, matrix_get(v, i, k), length));
  matrix_put(v, i, k, e);
  kb_close(kb, 2);
}

/* The smallest first (by absolute value), with their vectors: what Eigen does for complex matrices. */
static void sort_by_size(struct kb *kb, const struct matrix *t, const struct matrix *v, expr_id n) {
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  uint32_t best = kb_local(kb, i);
  expr_id j = kb_add(kb, i, kb_for(kb, LOOP_SEQ, kb_sub(kb, n, i))), held = kb_get(kb, best);
  struct element smaller = f_binary(&kb->f, SCALAR_LT, f_norm(&kb->f, matrix_get(t, j, j)), f_norm(&kb->f, matrix_get(t, held, held)));
  kb_set(kb, best, expr_select(kb->k, smaller.re, j, held));
  kb_close(kb, 1);
  expr_id other = kb_get(kb, best);
  struct element a = matrix_take(t, i, i), b = matrix_take(t, other, other);
  matrix_put(t, i, i, b);
  matrix_put(t, other, other, a);
  expr_id row = kb_for(kb, LOOP_SEQ, n);
  a = matrix_take(v, row, i);
  b = matrix_take(v, row, other);
  matrix_put(v, row, i, b);
  matrix_put(v, row, other, a);
  kb_close(kb, 2);
}

/* Column k of the vectors gets Eigen's phase: along the real form's column of its eigenvalue it is 1, of a pair i along the second; the
 * other one of a pair is conjugate. */
static void turn_vectors(struct kb *kb, const struct matrix *real_u, const struct matrix *t, const struct matrix *v, expr_id n) {
  struct formula *f = &kb->f;
  expr_id k = kb_for(kb, LOOP_SEQ, n);
  struct element part = e_now(kb, f_imag(f, matrix_get(t, k, k))), zero = num(kb, 0);
  kb_if(kb, f_binary(f, SCALAR_LT, part, zero).re);
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  matrix_put(v, i, k, f_conj(f, matrix_take(v, i, kb_sub(kb, k, kb_int(kb, 1)))));
  kb_close(kb, 1);
  kb_else(kb);
  expr_id is_pair = kb_get(kb, kb_local(kb, f_binary(f, SCALAR_LT, zero, part).re)), none = kb_int(kb, 0);
  expr_id column = kb_add(kb, k, expr_select(kb->k, is_pair, kb_int(kb, 1), none));
  struct accumulator along = acc_begin(kb, complex_num(kb, 0));
  i = kb_for(kb, LOOP_SEQ, n);
  acc_add(kb, &along, e_mul(kb, matrix_get(v, i, k), f_cast(f, f->dtype, matrix_get(real_u, i, column))));
  kb_close(kb, 1);
  struct element size = e_now(kb, f_norm(f, acc_get(kb, &along))), flat = f_binary(f, SCALAR_EQ, size, zero);
  struct element back = e_div(kb, f_conj(f, acc_get(kb, &along)), f_cast(f, f->dtype, f_select(f, flat, num(kb, 1), size)));
  back = e_now(kb, f_select(f, flat, complex_num(kb, 1), back));
  struct element quarter = {f_unary(f, SCALAR_NEG, f_imag(f, back)).re, f_real(back).re};
  back = e_now(kb, f_select(f, real_element(is_pair), quarter, back));
  i = kb_for(kb, LOOP_SEQ, n);
  struct element e = e_now(kb, e_mul(kb, matrix_get(v, i, k), back)), real = {f_real(e).re, zero.re};
  matrix_put(v, i, k, f_select(f, real_element(is_pair), e, real));
  kb_close(kb, 3);
}

status build_eig(struct op_call *c) {
  struct form s = {0};
  TRY(form_begin(c, &s, op_output_dtype(c, 0), 2)); /* phases depend on the number of steps, and so on the precision */
  struct kb *kb = &s.kb;
  enum dtype out = op_output_dtype(c, 0);
  bool is_real = !dtype_is_complex(s.x.dtype);
  if (is_real) {
    s.real_t = kb_scratch(kb, dtype_real(out), s.x.rank, s.x.dims);
    s.real_u = kb_scratch(kb, dtype_real(out), s.x.rank, s.x.dims);
  }
  uint32_t e = kb_out(kb, out, s.x.rank - 1, s.x.dims);
  kb_check(kb, form_factor(&s, is_real), INVALID_ARGUMENT, "Eigen decomposition was not successful. The input might not be valid.", NO_EXPR,
           NO_EXPR);
  struct matrix t = matrix_of(kb, s.t, s.at), u = matrix_of(kb, s.u, s.at), x = matrix_of(kb, s.work[0], s.at),
                v = matrix_of(kb, s.work[1], s.at);
  triangular_vectors(kb, &t, &x, s.n);
  full_vectors(kb, &u, &x, &v, s.n);
  struct matrix real_u = matrix_of(kb, s.real_u, s.at);
  if (is_real)
    turn_vectors(kb, &real_u, &t, &v, s.n);
  else
    sort_by_size(kb, &t, &v, s.n);
  s.at[s.x.rank - 2] = kb_for(kb, LOOP_SEQ, s.n);
  store_as(kb, e, s.at, matrix_get(&t, s.at[s.x.rank - 2], s.at[s.x.rank - 2]));
  kb_close(kb, s.x.rank - 1);
  op_set_output(c, 0, kb_value(kb, e));
  value_id vectors = kb_value(kb, s.work[1]);
  TRY(kb_finish(kb));
  if (node_attr_int(c->node, "compute_v", 1)) {
    TRY(op_cast(c, vectors, out, &vectors));
  } else {
    static const double zero[2];
    vectors = op_constant(c, out, 0, NULL, zero);
  }
  op_set_output(c, 1, vectors);
  return OK;
}

/* ---- square root ---- */

/* In place: columns from the left, in each from the diagonal up, of T's own elements only the one that is replaced is read. */
static void triangular_root(struct kb *kb, const struct matrix *t, expr_id n) {
  expr_id one = kb_int(kb, 1), j = kb_for(kb, LOOP_SEQ, n);
  struct element root = e_now(kb, f_unary(&kb->f, SCALAR_SQRT, matrix_take(t, j, j)));
  matrix_put(t, j, j, root);
  expr_id step = kb_for(kb, LOOP_SEQ, j), i = kb_sub(kb, kb_sub(kb, j, one), step);
  struct accumulator sum = acc_begin(kb, matrix_get(t, i, j));
  expr_id k = kb_add(kb, kb_add(kb, i, one), kb_for(kb, LOOP_SEQ, step));
  acc_set(kb, &sum, e_sub(kb, acc_get(kb, &sum), e_mul(kb, matrix_get(t, i, k), matrix_get(t, k, j))));
  kb_close(kb, 1);
  struct element both = e_add(kb, matrix_get(t, i, i), root);
  matrix_put(t, i, j, e_now(kb, e_div(kb, acc_get(kb, &sum), both)));
  kb_close(kb, 2);
}

#define REAL_ENOUGH 1e-10 /* of an eigenvalue of a real matrix: imaginary part against real part */

/* A real matrix with a negative eigenvalue has no real root: NaN. */
static void refuse_negative(struct kb *kb, const struct matrix *t, expr_id n) {
  struct formula *f = &kb->f;
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  struct element e = matrix_take(t, i, i), re = f_real(e), im = f_imag(f, e);
  struct element limit = e_mul(kb, re, num(kb, -REAL_ENOUGH));
  struct element real = f_binary(f, SCALAR_LE, f_unary(f, SCALAR_ABS, im), limit), negative = f_binary(f, SCALAR_LT, re, num(kb, 0));
  expr_id bad = kb_and(kb, real.re, negative.re);
  matrix_put(t, i, i, f_select(f, real_element(bad), complex_num(kb, NAN), e));
  kb_close(kb, 1);
}

status build_matrix_square_root(struct op_call *c) {
  struct form s;
  TRY(form_begin(c, &s, DTYPE_COMPLEX128, 1));
  struct kb *kb = &s.kb;
  uint32_t o = kb_out(kb, s.x.dtype, s.x.rank, s.x.dims);
  form_factor(&s, false);
  struct matrix t = matrix_of(kb, s.t, s.at), u = matrix_of(kb, s.u, s.at), work = matrix_of(kb, s.work[0], s.at),
                out = matrix_of(kb, o, s.at);
  if (!dtype_is_complex(s.x.dtype))
    refuse_negative(kb, &t, s.n);
  triangular_root(kb, &t, s.n);
  schur_restore(kb, &u, &t, &work, &out, s.n);
  kb_close(kb, s.x.rank - 2);
  op_set_output(c, 0, kb_value(kb, o));
  return kb_finish(kb);
}

/* ---- logarithm ---- */

#define NEAR_ONE 0.25 /* below this the rule of 8 points is exact to rounding */
#define ROOTS_MAX 80
static const double rule_points[] = {0.019855071751231856, 0.10166676129318664, 0.2372337950418355, 0.4082826787521751,
                                     0.5917173212478249,   0.7627662049581645,  0.8983332387068134, 0.9801449282487681};
static const double rule_weights[] = {0.05061426814518813, 0.11119051722668724, 0.15685332293894363, 0.18134189168918100,
                                      0.18134189168918100, 0.15685332293894363, 0.11119051722668724, 0.05061426814518813};

/* The largest row sum of |T - 1|. */
static struct element distance_from_one(struct kb *kb, const struct matrix *t, expr_id n) {
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  struct accumulator sum = acc_begin(kb, num(kb, 0));
  expr_id j = kb_add(kb, i, kb_for(kb, LOOP_SEQ, kb_sub(kb, n, i)));
  struct element same = real_element(expr_binary(kb->k, SCALAR_EQ, i, j)), e = matrix_get(t, i, j);
  acc_add(kb, &sum, f_norm(&kb->f, f_select(&kb->f, same, e_sub(kb, e, complex_num(kb, 1)), e)));
  kb_close(kb, 1);
  acc_set(kb, &largest, f_binary(&kb->f, SCALAR_MAX, acc_get(kb, &largest), acc_get(kb, &sum)));
  kb_close(kb, 1);
  return acc_get(kb, &largest);
}

/* log(1 + E) = the integral of E / (1 + s E) over s in [0,1], of upper triangular E = T - 1: y is one point's share. */
static void add_point(struct kb *kb, const struct matrix *t, const struct matrix *y, const struct matrix *sum, int point,
                      struct element scale, expr_id n) {
  struct formula *f = &kb->f;
  struct element at = num(kb, rule_points[point]), one = complex_num(kb, 1);
  expr_id step1 = kb_int(kb, 1), j = kb_for(kb, LOOP_SEQ, n), step = kb_for(kb, LOOP_SEQ, kb_add(kb, j, step1)), i = kb_sub(kb, j, step);
  struct element e = matrix_get(t, i, j), same = real_element(expr_binary(kb->k, SCALAR_EQ, i, j));
  struct accumulator top = acc_begin(kb, f_select(f, same, e_sub(kb, e, one), e));
  expr_id k = kb_add(kb, kb_add(kb, i, step1), kb_for(kb, LOOP_SEQ, step));
  acc_set(kb, &top, e_sub(kb, acc_get(kb, &top), e_mul(kb, at, e_mul(kb, matrix_get(t, i, k), matrix_get(y, k, j)))));
  kb_close(kb, 1);
  struct element bottom = e_add(kb, one, e_mul(kb, at, e_sub(kb, matrix_get(t, i, i), one)));
  struct element share = e_now(kb, e_div(kb, acc_get(kb, &top), bottom));
  matrix_put(y, i, j, share);
  struct element part = e_mul(kb, e_mul(kb, num(kb, rule_weights[point]), scale), share);
  matrix_put(sum, i, j, e_now(kb, point ? e_add(kb, matrix_get(sum, i, j), part) : part));
  kb_close(kb, 2);
}

/* T becomes its root again and again; gives 2 to the number of roots. */
static struct element take_roots(struct kb *kb, const struct matrix *t, expr_id n) {
  struct accumulator scale = acc_begin(kb, num(kb, 1));
  uint32_t count = kb_local(kb, kb_int(kb, 0)), far = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_get(kb, far));
  struct element distance = distance_from_one(kb, t, n);
  expr_id more =
    kb_and(kb, f_binary(&kb->f, SCALAR_LT, num(kb, NEAR_ONE), distance).re, kb_lt(kb, kb_get(kb, count), kb_int(kb, ROOTS_MAX)));
  kb_set(kb, far, more);
  kb_if(kb, kb_get(kb, far));
  triangular_root(kb, t, n);
  acc_add(kb, &scale, acc_get(kb, &scale));
  kb_set(kb, count, kb_add(kb, kb_get(kb, count), kb_int(kb, 1)));
  kb_close(kb, 2);
  return acc_get(kb, &scale);
}

/* Imaginary parts of the diagonal that are rounding errors would choose between two logarithms of a negative number: they become 0. */
static void clean_diagonal(struct kb *kb, const struct matrix *t, expr_id n) {
  struct accumulator largest = acc_begin(kb, num(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, n);
  acc_set(kb, &largest, f_binary(&kb->f, SCALAR_MAX, acc_get(kb, &largest), f_norm(&kb->f, matrix_get(t, i, i))));
  kb_close(kb, 1);
  i = kb_for(kb, LOOP_SEQ, n);
  struct element e = matrix_take(t, i, i), limit = e_mul(kb, acc_get(kb, &largest), e_mul(kb, num(kb, 8), epsilon(kb)));
  struct element small = f_binary(&kb->f, SCALAR_LE, f_unary(&kb->f, SCALAR_ABS, f_imag(&kb->f, e)), limit);
  matrix_put(t, i, i, f_select(&kb->f, small, f_cast(&kb->f, kb->f.dtype, f_real(e)), e));
  kb_close(kb, 1);
}

status build_matrix_logarithm(struct op_call *c) {
  struct form s;
  TRY(form_begin(c, &s, DTYPE_COMPLEX128, 2));
  struct kb *kb = &s.kb;
  uint32_t o = kb_out(kb, s.x.dtype, s.x.rank, s.x.dims), d = kb_out(kb, DTYPE_COMPLEX128, s.x.rank - 1, s.x.dims);
  form_factor(&s, false);
  struct matrix t = matrix_of(kb, s.t, s.at), u = matrix_of(kb, s.u, s.at), out = matrix_of(kb, o, s.at);
  struct matrix y = matrix_of(kb, s.work[0], s.at), sum = matrix_of(kb, s.work[1], s.at);
  clean_diagonal(kb, &t, s.n);
  expr_id i = s.at[s.x.rank - 2] = kb_for(kb, LOOP_SEQ, s.n); /* the diagonal's logarithms lose nothing */
  kb_store(kb, d, s.at, f_unary(&kb->f, SCALAR_LOG, matrix_take(&t, i, i)));
  kb_close(kb, 1);
  struct element scale = take_roots(kb, &t, s.n);
  for (int point = 0; point < (int)(sizeof rule_points / sizeof *rule_points); point++)
    add_point(kb, &t, &y, &sum, point, scale, s.n);
  i = s.at[s.x.rank - 2] = kb_for(kb, LOOP_SEQ, s.n);
  matrix_put(&sum, i, i, kb_load(kb, d, s.at));
  kb_close(kb, 1);
  schur_restore(kb, &u, &sum, &y, &out, s.n);
  kb_close(kb, s.x.rank - 2);
  op_set_output(c, 0, kb_value(kb, o));
  return kb_finish(kb);
}
