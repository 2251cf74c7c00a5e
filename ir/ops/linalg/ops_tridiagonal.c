/* ops_tridiagonal.c: matrices that are three diagonals: products, and solving by elimination, with exchanges of neighbouring rows
 * (then the upper factor has a second diagonal above) or without. What cannot be solved becomes NaN, or, if the op wants it, pivots that
 * are too small are moved away from 0, as LAPACK's xLAGTS does it. */
#include <float.h>
#include <math.h>

#include "ir/ops/linalg/matrix.h"

static struct element size_of(struct kb *kb, struct element e) { return f_norm(&kb->f, e); }
static expr_id is_zero(struct kb *kb, struct element e) { return f_binary(&kb->f, SCALAR_EQ, e, f_const_like(&kb->f, e, 0)).re; }

/* ---- product ---- */

/* superdiagonal, diagonal, subdiagonal, each [..., 1, n]; rhs [..., n, columns] */
status build_tridiagonal_matmul(struct op_call *c) {
  static const char *const names[] = {"superdiagonal", "main diagonal", "subdiagonal"};
  value_id in[4];
  for (uint32_t i = 0; i < 4; i++)
    TRY(op_input(c, i, &in[i]));
  struct flow_value x = *op_value(c, in[3]);
  if (x.rank < 2)
    return fail(INVALID_ARGUMENT, "Input tensor 3 must have rank >= 2, got %d", x.rank);
  for (int d = 0; d < 3; d++) {
    struct flow_value y = *op_value(c, in[d]);
    if (y.rank != x.rank)
      return fail(INVALID_ARGUMENT, "All input tensors must have the same rank.");
    for (int i = 0; i < x.rank - 2; i++)
      TRY(op_equal_dims(c, y.dims[i], x.dims[i], "All input tensors must have the same outer dimensions"));
    if (dim_equal(op_dims(c), y.dims[x.rank - 2], op_dim(c, 1)) == 0 || dim_equal(op_dims(c), y.dims[x.rank - 1], x.dims[x.rank - 2]) == 0)
      return fail(INVALID_ARGUMENT, "Invalid %s shape: %s", names[d], op_shape_text(c, y.rank, y.dims));
    TRY(op_equal_dims(c, y.dims[x.rank - 2], op_dim(c, 1), "Invalid diagonal shape"));
    TRY(op_equal_dims(c, y.dims[x.rank - 1], x.dims[x.rank - 2], "Invalid diagonal shape"));
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t b[4], o;
  for (int i = 0; i < 4; i++)
    b[i] = kb_in(&kb, in[i]);
  o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], zero = kb_int(&kb, 0), n = kb_dim(&kb, x.dims[x.rank - 2]);
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  expr_id i = at[x.rank - 2], j = at[x.rank - 1];
  struct matrix rhs = matrix_of(&kb, b[3], at);
  struct element sum = {NO_EXPR, NO_EXPR}, none = f_const(&kb.f, 0);
  for (int d = 1; d >= -1; d--) { /* the element above, on, below the diagonal */
    struct matrix diagonal = matrix_of(&kb, b[1 - d], at);
    expr_id other = kb_add(&kb, i, kb_int(&kb, d)), inside = d > 0 ? kb_lt(&kb, other, n) : kb_lt(&kb, kb_int(&kb, -1), other);
    struct element part = e_mul(&kb, matrix_get(&diagonal, zero, i), matrix_get(&rhs, kb_clamp(&kb, other, n), j));
    part = d ? f_select(&kb.f, real_element(inside), part, none) : part;
    sum = sum.re == NO_EXPR ? part : e_add(&kb, sum, part);
  }
  kb_store(&kb, o, at, sum);
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- solving ---- */

struct solver {
  struct kb *kb;
  struct matrix given, u, x, rhs; /* the diagonals (from above); the upper factor's, from the main one on: [3, n]; the solution */
  expr_id n, columns;
  uint32_t good; /* a bool: false when a pivot was 0 */
};

static struct element given(const struct solver *s, int which, expr_id i) { return matrix_get(&s->given, kb_int(s->kb, which), i); }
static struct element upper(const struct solver *s, int which, expr_id i) { return matrix_get(&s->u, kb_int(s->kb, which), i); }
static void put_upper(const struct solver *s, int which, expr_id i, struct element e) { matrix_put(&s->u, kb_int(s->kb, which), i, e); }
static void need(const struct solver *s, struct element pivot) {
  kb_if(s->kb, is_zero(s->kb, pivot));
  kb_set(s->kb, s->good, expr_int(s->kb->k, DTYPE_BOOL, 0));
  kb_close(s->kb, 1);
}
/* x[i] = rhs[i] - factor * x[i - 1]; exchanged: x[i] = x[i - 1] - factor * rhs[i], x[i - 1] = rhs[i] */
static void eliminate_right(const struct solver *s, expr_id i, struct element factor, bool exchanged) {
  struct kb *kb = s->kb;
  expr_id before = kb_sub(kb, i, kb_int(kb, 1)), j = kb_for(kb, LOOP_SEQ, s->columns);
  struct element here = matrix_take(&s->rhs, i, j), last = matrix_take(&s->x, before, j);
  matrix_put(&s->x, i, j, exchanged ? e_sub(kb, last, e_mul(kb, factor, here)) : e_sub(kb, here, e_mul(kb, factor, last)));
  if (exchanged)
    matrix_put(&s->x, before, j, here);
  kb_close(kb, 1);
}

/* Row i against row i - 1, which is the pivot's row, or changes places with it. Elements behind the last column are never read. */
static void eliminate_kept(const struct solver *s, expr_id i) {
  struct kb *kb = s->kb;
  expr_id before = kb_sub(kb, i, kb_int(kb, 1));
  struct element factor = e_now(kb, e_div(kb, given(s, 2, i), upper(s, 0, before)));
  put_upper(s, 0, i, e_sub(kb, given(s, 1, i), e_mul(kb, factor, upper(s, 1, before))));
  put_upper(s, 1, i, given(s, 0, i));
  put_upper(s, 2, before, f_const(&kb->f, 0));
  eliminate_right(s, i, factor, false);
}
static void eliminate_exchanged(const struct solver *s, expr_id i) {
  struct kb *kb = s->kb;
  expr_id before = kb_sub(kb, i, kb_int(kb, 1));
  struct element factor = e_now(kb, e_div(kb, upper(s, 0, before), given(s, 2, i)));
  put_upper(s, 0, before, given(s, 2, i));
  put_upper(s, 0, i, e_sub(kb, upper(s, 1, before), e_mul(kb, factor, given(s, 1, i))));
  put_upper(s, 1, before, given(s, 1, i));
  put_upper(s, 2, before, given(s, 0, i));
  put_upper(s, 1, i, e_mul(kb, f_unary(&kb->f, SCALAR_NEG, factor), given(s, 0, i)));
  eliminate_right(s, i, factor, true);
}

static void begin_elimination(const struct solver *s) {
  struct kb *kb = s->kb;
  expr_id zero = kb_int(kb, 0);
  put_upper(s, 0, zero, given(s, 1, zero));
  put_upper(s, 1, zero, given(s, 0, zero));
  expr_id j = kb_for(kb, LOOP_SEQ, s->columns);
  matrix_put(&s->x, zero, j, matrix_get(&s->rhs, zero, j));
  kb_close(kb, 1);
}
/* Opens the loop over rows 1 .. n - 1; closed by the caller. */
static expr_id rows_behind_first(const struct solver *s) {
  expr_id one = kb_int(s->kb, 1);
  return kb_add(s->kb, kb_for(s->kb, LOOP_SEQ, kb_sub(s->kb, s->n, one)), one);
}

/* Without exchanges a pivot that is 0 ends it; with them only when both candidates are 0. */
static void eliminate(const struct solver *s, bool exchanges) {
  struct kb *kb = s->kb;
  begin_elimination(s);
  expr_id i = rows_behind_first(s), before = kb_sub(kb, i, kb_int(kb, 1));
  struct element pivot = upper(s, 0, before);
  if (exchanges) {
    kb_if(kb, e_lt(kb, size_of(kb, pivot), size_of(kb, given(s, 2, i))));
    eliminate_exchanged(s, i);
    kb_else(kb);
  }
  need(s, pivot);
  eliminate_kept(s, i);
  kb_close(kb, exchanges ? 2 : 1);
  need(s, upper(s, 0, kb_sub(kb, s->n, kb_int(kb, 1))));
}

/* x[i] without the parts of the rows behind it */
static struct element remainder_of(const struct solver *s, expr_id i, expr_id j) {
  struct kb *kb = s->kb;
  struct accumulator acc = acc_begin(kb, matrix_get(&s->x, i, j));
  for (int d = 1; d <= 2; d++) {
    expr_id other = kb_add(kb, i, kb_int(kb, d));
    kb_if(kb, kb_lt(kb, other, s->n));
    acc_set(kb, &acc, e_sub(kb, acc_get(kb, &acc), e_mul(kb, upper(s, d, i), matrix_get(&s->x, other, j))));
    kb_close(kb, 1);
  }
  return acc_get(kb, &acc);
}
static expr_id rows_from_last(const struct solver *s) {
  return kb_sub(s->kb, kb_sub(s->kb, s->n, kb_int(s->kb, 1)), kb_for(s->kb, LOOP_SEQ, s->n));
}
static void substitute(const struct solver *s) {
  struct kb *kb = s->kb;
  expr_id i = rows_from_last(s), j = kb_for(kb, LOOP_SEQ, s->columns);
  struct element solved = e_div(kb, remainder_of(s, i, j), upper(s, 0, i)), bad = f_const(&kb->f, NAN);
  if (bad.im)
    bad.im = expr_float(kb->k, dtype_real(kb->f.dtype), 0);
  matrix_put(&s->x, i, j, e_now(kb, f_select(&kb->f, real_element(kb_get(kb, s->good)), solved, bad)));
  kb_close(kb, 2);
}

/* ---- with pivots moved away from 0 ---- */

/* Exchanges where the row's own pivot is smaller, each compared with its row; gives the largest element of the upper factor. */
static struct element eliminate_scaled(const struct solver *s) {
  struct kb *kb = s->kb;
  enum dtype real = dtype_real(kb->f.dtype);
  struct element none = f_const_as(&kb->f, real, 0);
  begin_elimination(s);
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1);
  struct accumulator scale = acc_begin(kb, e_add(kb, size_of(kb, upper(s, 0, zero)), size_of(kb, upper(s, 1, zero))));
  expr_id i = rows_behind_first(s), before = kb_sub(kb, i, one), inner = kb_lt(kb, kb_add(kb, i, one), s->n);
  struct element sub = given(s, 2, i), own = e_add(kb, size_of(kb, sub), size_of(kb, given(s, 1, i)));
  own = e_now(kb, e_add(kb, own, f_select(&kb->f, real_element(inner), size_of(kb, given(s, 0, i)), none)));
  struct element pivot = upper(s, 0, before);
  struct element first =
    e_now(kb, f_select(&kb->f, real_element(is_zero(kb, pivot)), none, e_div(kb, size_of(kb, pivot), acc_get(kb, &scale))));
  struct element second = e_now(kb, e_div(kb, size_of(kb, sub), own));
  kb_if(kb, is_zero(kb, sub));
  eliminate_right(s, i, f_const(&kb->f, 0), false);
  put_upper(s, 0, i, given(s, 1, i));
  put_upper(s, 1, i, given(s, 0, i));
  put_upper(s, 2, before, f_const(&kb->f, 0));
  acc_set(kb, &scale, own);
  kb_else(kb);
  kb_if(kb, f_binary(&kb->f, SCALAR_LE, second, first).re);
  eliminate_kept(s, i);
  acc_set(kb, &scale, own);
  kb_else(kb);
  eliminate_exchanged(s, i);
  kb_close(kb, 3);
  struct accumulator largest = acc_begin(kb, none);
  i = kb_for(kb, LOOP_SEQ, s->n);
  for (int d = 0; d < 3; d++) {
    kb_if(kb, kb_lt(kb, kb_add(kb, i, kb_int(kb, d)), s->n));
    acc_set(kb, &largest, f_binary(&kb->f, SCALAR_MAX, acc_get(kb, &largest), size_of(kb, upper(s, d, i))));
    kb_close(kb, 1);
  }
  kb_close(kb, 1);
  return acc_get(kb, &largest);
}

/* Moves the pivot until neither 1 / pivot nor the row over it overflows; a row may be scaled up instead. */
static struct element safe_pivot(const struct solver *s, expr_id i, struct element tolerance) {
  struct kb *kb = s->kb;
  struct formula *f = &kb->f;
  enum dtype real = dtype_real(f->dtype);
  double smallest = real == DTYPE_DOUBLE ? DBL_MIN : FLT_MIN;
  struct element one = f_const_as(f, real, 1), tiny = f_const_as(f, real, smallest), huge = f_const_as(f, real, 1 / smallest);
  struct accumulator pivot = acc_begin(kb, upper(s, 0, i)), largest = acc_begin(kb, f_const_as(f, real, 0));
  expr_id j = kb_for(kb, LOOP_SEQ, s->columns);
  acc_set(kb, &largest, f_binary(f, SCALAR_MAX, acc_get(kb, &largest), size_of(kb, matrix_get(&s->x, i, j))));
  kb_close(kb, 1);
  struct element step = f_binary(f, SCALAR_MAX, tolerance, tiny),
                 negative = real_element(e_lt(kb, f_real(acc_get(kb, &pivot)), f_const_as(f, real, 0)));
  struct accumulator move = acc_begin(kb, f_select(f, negative, f_unary(f, SCALAR_NEG, step), step));
  uint32_t again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_and(kb, kb_get(kb, again), e_lt(kb, size_of(kb, acc_get(kb, &pivot)), one)));
  struct element size = e_now(kb, size_of(kb, acc_get(kb, &pivot))), top = acc_get(kb, &largest);
  expr_id below = e_lt(kb, size, tiny);
  expr_id hopeless = expr_binary(kb->k, SCALAR_OR, is_zero(kb, size), e_lt(kb, size, e_mul(kb, top, tiny)));
  expr_id overflows = e_lt(kb, e_mul(kb, size, huge), top);
  kb_if(kb, expr_select(kb->k, below, hopeless, overflows));
  acc_set(kb, &pivot, e_add(kb, acc_get(kb, &pivot), acc_get(kb, &move)));
  acc_set(kb, &move, e_add(kb, acc_get(kb, &move), acc_get(kb, &move)));
  kb_else(kb);
  kb_if(kb, below);
  acc_set(kb, &pivot, e_mul(kb, acc_get(kb, &pivot), huge));
  j = kb_for(kb, LOOP_SEQ, s->columns);
  struct element scaled = e_now(kb, e_mul(kb, matrix_get(&s->x, i, j), huge));
  matrix_put(&s->x, i, j, scaled);
  kb_close(kb, 2);
  kb_set(kb, again, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_close(kb, 2);
  return acc_get(kb, &pivot);
}

static void substitute_safely(const struct solver *s, struct element largest) {
  struct kb *kb = s->kb;
  enum dtype real = dtype_real(kb->f.dtype);
  struct element tolerance = e_now(kb, e_mul(kb, largest, f_const_as(&kb->f, real, real == DTYPE_DOUBLE ? DBL_EPSILON : FLT_EPSILON)));
  expr_id i = rows_from_last(s), j = kb_for(kb, LOOP_SEQ, s->columns);
  struct element rest = e_now(kb, remainder_of(s, i, j));
  matrix_put(&s->x, i, j, rest);
  kb_close(kb, 1);
  struct element pivot = safe_pivot(s, i, tolerance), inverse = e_now(kb, e_div(kb, f_const(&kb->f, 1), pivot));
  j = kb_for(kb, LOOP_SEQ, s->columns);
  struct element solved = e_now(kb, e_mul(kb, matrix_get(&s->x, i, j), inverse));
  matrix_put(&s->x, i, j, solved);
  kb_close(kb, 2);
}

/* ---- the op ---- */

static status check_diagonals(struct op_call *c, value_id diagonals, value_id right) {
  struct flow_value d = *op_value(c, diagonals), r = *op_value(c, right);
  if (d.rank < 2 || d.rank != r.rank)
    return fail(INVALID_ARGUMENT, "All input tensors must have the same rank, at least 2: %s and %s", op_shape_text(c, d.rank, d.dims),
                op_shape_text(c, r.rank, r.dims));
  for (int i = 0; i < d.rank - 2; i++)
    TRY(op_equal_dims(c, d.dims[i], r.dims[i], "All input tensors must have the same outer dimensions"));
  TRY(op_equal_dims(c, d.dims[d.rank - 2], op_dim(c, 3), "Expected diagonals to be provided as a matrix with 3 rows"));
  return op_equal_dims(c, d.dims[d.rank - 1], r.dims[r.rank - 2], "Expected the same number of left-hand sides and right-hand sides");
}

/* diagonals [..., 3, n] from the one above (whose last element is unused) to the one below (first unused) */
status build_tridiagonal_solve(struct op_call *c) {
  value_id diagonals, right;
  TRY(op_input(c, 0, &diagonals));
  TRY(op_input(c, 1, &right));
  TRY(check_diagonals(c, diagonals, right));
  bool exchanges = node_attr_int(c->node, "partial_pivoting", 1), perturb = node_attr_int(c->node, "perturb_singular", 0);
  if (perturb && !exchanges)
    return fail(INVALID_ARGUMENT, "Setting perturb_singular requires pivoting.");
  struct flow_value d = *op_value(c, diagonals), r = *op_value(c, right);
  struct kb kb;
  kb_begin(&kb, c, r.dtype);
  uint32_t a = kb_in(&kb, diagonals), b = kb_in(&kb, right), u = kb_out(&kb, r.dtype, d.rank, d.dims),
           o = kb_out(&kb, r.dtype, r.rank, r.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, r.rank - 2, r.dims, at);
  struct solver s = {.kb = &kb,
                     .given = matrix_of(&kb, a, at),
                     .u = matrix_of(&kb, u, at),
                     .x = matrix_of(&kb, o, at),
                     .rhs = matrix_of(&kb, b, at),
                     .n = kb_dim(&kb, r.dims[r.rank - 2]),
                     .columns = kb_dim(&kb, r.dims[r.rank - 1])};
  s.good = kb_local(&kb, expr_int(kb.k, DTYPE_BOOL, 1));
  kb_if(&kb, kb_lt(&kb, kb_int(&kb, 0), s.n));
  if (perturb) {
    substitute_safely(&s, eliminate_scaled(&s));
  } else {
    eliminate(&s, exchanges);
    substitute(&s);
  }
  kb_close(&kb, r.rank - 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
