/* ops_diagonal.c: diagonals of tensors and matrices: Diag, DiagPart, MatrixBandPart and the MatrixDiag family.
 *
 * The MatrixDiag family has one meaning in three versions: diagonals lower..upper are packed as rows of a matrix, the
 * uppermost first, each aligned to the left or right end of its row. Version 1 knows the main diagonal only, version 2
 * aligns left. */
#include <string.h>

#include "ir/lower/lower_walk.h"
#include "ir/ops/arrange.h"

/* ---- Diag: the diagonal of a tensor of twice the rank ---- */

status build_diag(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 1 || 2 * x.rank > LIMIT_RANK)
    return fail(x.rank < 1 ? INVALID_ARGUMENT : UNIMPLEMENTED, "Input must be at least rank 1 and at most %d, got %d", LIMIT_RANK / 2,
                x.rank);
  dim dims[LIMIT_RANK];
  for (int d = 0; d < 2 * x.rank; d++)
    dims[d] = x.dims[d % x.rank];
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, 2 * x.rank, dims);
  expr_id at[LIMIT_RANK], on = expr_int(kb.k, DTYPE_BOOL, 1);
  kb_loops(&kb, LOOP_PAR, 2 * x.rank, dims, at);
  for (int d = 0; d < x.rank; d++)
    on = kb_and(&kb, on, kb_eq(&kb, at[d], at[d + x.rank]));
  kb_store(&kb, out, at, f_select(&kb.f, real_element(on), kb_load(&kb, in, at), kb_zero(&kb, x.dtype)));
  kb_close(&kb, 2 * x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}

status build_diag_part(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  int half = x.rank / 2;
  if (x.rank < 2 || x.rank % 2)
    return fail(INVALID_ARGUMENT, "The rank of the tensor should be even and positive, got shape %s", op_shape_text(c, x.rank, x.dims));
  for (int d = 0; d < half; d++)
    TRY(op_equal_dims(c, x.dims[d], x.dims[d + half], "Invalid shape: dimensions of the two halves"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, half, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, half, x.dims, at);
  for (int d = 0; d < half; d++)
    at[d + half] = at[d];
  kb_store(&kb, out, at, kb_load(&kb, in, at));
  kb_close(&kb, half);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- MatrixBandPart ---- */

static status check_band(struct op_call *c, const struct flow_value *x, value_id lower, value_id upper) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id rows = kb_dim(&guard, x->dims[x->rank - 2]), columns = kb_dim(&guard, x->dims[x->rank - 1]);
  expr_id l = kb_element(&guard, lower, 0), u = kb_element(&guard, upper, 0);
  kb_check(&guard, kb_le(&guard, l, rows), INVALID_ARGUMENT, "num_lower must be negative or less or equal to number of rows (%d) got: %d",
           rows, l);
  kb_check(&guard, kb_le(&guard, u, columns), INVALID_ARGUMENT,
           "num_upper must be negative or less or equal to number of columns (%d) got: %d", columns, u);
  return guard_finish(&guard);
}

status build_matrix_band_part(struct op_call *c) {
  value_id v, lower, upper;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &lower));
  TRY(op_input(c, 2, &upper));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 2)
    return fail(INVALID_ARGUMENT, "input must be at least 2-dim, received shape: %s", op_shape_text(c, x.rank, x.dims));
  TRY(check_band(c, &x, lower, upper));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], zero = kb_int(&kb, 0);
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  expr_id below = kb_sub(&kb, at[x.rank - 2], at[x.rank - 1]), above = kb_sub(&kb, at[x.rank - 1], at[x.rank - 2]);
  expr_id l = kb_element(&kb, lower, 0), u = kb_element(&kb, upper, 0);
  expr_id keep = kb_and(&kb, kb_or(&kb, kb_lt(&kb, l, zero), kb_le(&kb, below, l)), kb_or(&kb, kb_lt(&kb, u, zero), kb_le(&kb, above, u)));
  kb_store(&kb, out, at, f_select(&kb.f, real_element(keep), kb_load(&kb, in, at), kb_zero(&kb, x.dtype)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- the MatrixDiag family ---- */

enum diagonals { ONE, SEVERAL, ONE_OR_SEVERAL };
struct band {
  value_id k; /* a scalar, or a vector of one or two; NO_VALUE: the main diagonal */
  int last;   /* the place of the upper one in it */
  enum diagonals are;
  bool left_above, left_below; /* how diagonals above and below the main one are aligned in their rows */
  dim rows, columns;           /* of the matrix */
  dim count, length;           /* of diagonals; of the longest */
  value_id wanted[2];          /* num_rows and num_cols of what makes a matrix */
};

static expr_id lower_of(struct kb *kb, const struct band *b) { return b->k ? kb_element(kb, b->k, 0) : kb_int(kb, 0); }
static expr_id upper_of(struct kb *kb, const struct band *b) { return b->k ? kb_element(kb, b->k, b->last) : kb_int(kb, 0); }
static expr_id min_of(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_MIN, a, b); }
static expr_id max_of(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_MAX, a, b); }

/* Whether two numbers of diagonals differ. */
static enum diagonals count_diagonals(struct op_call *c, value_id k) {
  dim *e;
  int count, less = -1;
  if (op_has_known_elements(c, k, &e, &count) && e[0] != NO_DIM && e[1] != NO_DIM)
    less = dim_less(op_dims(c), e[0], e[1]);
  return less < 0 ? ONE_OR_SEVERAL : less ? SEVERAL : ONE;
}

static status read_band(struct op_call *c, struct band *b) {
  uint32_t at = op_arg_index(c, "k");
  const char *align = node_attr_string(c->node, "align", "LEFT_LEFT");
  *b = (struct band){.left_above = strncmp(align, "LEFT", 4) == 0, .left_below = strstr(align, "_LEFT") != NULL};
  if (at == UINT32_MAX)
    return OK;
  int length = 1;
  TRY(op_input(c, at, &b->k));
  if (op_value(c, b->k)->rank > 0)
    TRY(op_vector_length(c, b->k, "k", &length));
  if (length < 1 || length > 2)
    return fail(INVALID_ARGUMENT, "diag_index must be a scalar or a vector with one or two elements");
  b->last = length - 1;
  b->are = length > 1 ? count_diagonals(c, b->k) : ONE;
  struct kb guard;
  guard_begin(&guard, c);
  expr_id lower = lower_of(&guard, b), upper = upper_of(&guard, b);
  kb_check(&guard, kb_le(&guard, lower, upper), INVALID_ARGUMENT, "lower_diag_index must not be larger than upper_diag_index: %d > %d",
           lower, upper);
  return guard_finish(&guard);
}

/* There is one, or there are several, as a rank says; else it is an error. */
static status settle_band(struct op_call *c, struct band *b, bool several) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id is_less = kb_lt(&guard, lower_of(&guard, b), upper_of(&guard, b)), said = expr_int(guard.k, DTYPE_BOOL, several);
  kb_check(&guard, kb_eq(&guard, is_less, said), INVALID_ARGUMENT,
           "the rank of the diagonals does not match lower_diag_index and upper_diag_index", NO_EXPR, NO_EXPR);
  b->are = several ? SEVERAL : ONE;
  return guard_finish(&guard);
}

/* Results have one dimension more where there are several: both are built where only the step knows it. */
static status build_band(struct op_call *c, const struct band *b, status (*build)(struct op_call *c, struct band *b)) {
  struct band sides[] = {*b, *b};
  if (b->are != ONE_OR_SEVERAL)
    return build(c, &sides[0]);
  struct bound out[2];
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_BOOL, 0, NULL);
  kb_store(&kb, o, NULL, real_element(kb_lt(&kb, lower_of(&kb, b), upper_of(&kb, b))));
  value_id several = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  for (uint32_t k = 0; k < 2; k++) {
    struct op_call one = *c;
    one.out = &out[k];
    one.guards = guards_add(c->lw, c->guards, (struct flow_guard){several, k});
    sides[k].are = k ? SEVERAL : ONE;
    TRY(build(&one, &sides[k]));
    op_go_on(c, &one);
  }
  c->out[0] = bound_alternatives(c, several, out[0], out[1]);
  return OK;
}

static status check_band_index(struct op_call *c, const struct band *b) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id rows = kb_dim(&guard, b->rows), columns = kb_dim(&guard, b->columns), zero = kb_int(&guard, 0);
  expr_id empty = kb_or(&guard, kb_eq(&guard, rows, zero), kb_eq(&guard, columns, zero));
  for (int i = 0; i < 2; i++) {
    expr_id k = i ? upper_of(&guard, b) : lower_of(&guard, b);
    expr_id inside = kb_and(&guard, kb_lt(&guard, zero, kb_add(&guard, k, rows)), kb_lt(&guard, k, columns));
    kb_check(&guard, kb_or(&guard, kb_eq(&guard, k, zero), kb_or(&guard, inside, empty)), INVALID_ARGUMENT,
             arena_printf(op_arena(c), "%s_diag_index is out of bound: %%d It must be between -num_rows and num_cols (%%d)",
                          i ? "upper" : "lower"),
             k, columns);
  }
  return guard_finish(&guard);
}

/* Two sizes that follow from k. */
static status band_sizes(struct op_call *c, const struct band *b, void (*sizes)(struct kb *kb, const struct band *b, expr_id *out),
                         dim *first, dim *second) {
  dim two = op_dim(c, 2), dims[2];
  expr_id e[2];
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &two);
  sizes(&kb, b, e);
  for (int i = 0; i < 2; i++) {
    expr_id at = kb_int(&kb, i);
    kb_store(&kb, o, &at, real_element(e[i]));
  }
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  TRY(op_bound_dims(c, v, 2, dims));
  *first = dims[0];
  *second = dims[1];
  return OK;
}

static expr_id count_of(struct kb *kb, const struct band *b) {
  return kb_add(kb, kb_sub(kb, upper_of(kb, b), lower_of(kb, b)), kb_int(kb, 1));
}
/* How many diagonals the matrix has, and the longest one. */
static void packed_sizes(struct kb *kb, const struct band *b, expr_id *out) {
  expr_id zero = kb_int(kb, 0);
  out[0] = count_of(kb, b);
  out[1] = min_of(kb, kb_add(kb, kb_dim(kb, b->rows), min_of(kb, upper_of(kb, b), zero)),
                  kb_sub(kb, kb_dim(kb, b->columns), max_of(kb, lower_of(kb, b), zero)));
}

/* The length of diagonal k and where its first element is in its row. */
static void diagonal_row(struct kb *kb, const struct band *b, expr_id k, expr_id *length, expr_id *first) {
  expr_id zero = kb_int(kb, 0), rows = kb_dim(kb, b->rows), columns = kb_dim(kb, b->columns);
  expr_id by_rows = kb_add(kb, rows, min_of(kb, k, zero)), by_columns = kb_sub(kb, columns, max_of(kb, k, zero));
  *length = min_of(kb, by_rows, by_columns);
  expr_id above = expr_int(kb->k, DTYPE_BOOL, b->left_above), below = expr_int(kb->k, DTYPE_BOOL, b->left_below);
  expr_id left = kb_or(kb, kb_and(kb, kb_le(kb, zero, k), above), kb_and(kb, kb_le(kb, k, zero), below));
  *first = kb_select(kb, left, zero, kb_sub(kb, kb_dim(kb, b->length), *length));
}

/* The element of packed diagonals that belongs at (row, column); *inside: it is in the band. `batch` are the places before. */
static struct element load_diagonal(struct kb *kb, const struct band *b, uint32_t diagonal, int batch, const expr_id *at, expr_id *inside) {
  expr_id row = at[batch], column = at[batch + 1], k = kb_sub(kb, column, row), zero = kb_int(kb, 0);
  expr_id index[LIMIT_RANK], length, first, upper = upper_of(kb, b);
  *inside = kb_and(kb, kb_le(kb, lower_of(kb, b), k), kb_le(kb, k, upper));
  diagonal_row(kb, b, b->are == ONE ? upper : k, &length, &first);
  memcpy(index, at, sizeof *at * (size_t)batch);
  expr_id along = kb_add(kb, first, kb_sub(kb, column, max_of(kb, k, zero)));
  int n = batch;
  if (b->are == SEVERAL)
    index[n++] = kb_clamp(kb, kb_sub(kb, upper, k), kb_dim(kb, b->count));
  index[n] = kb_clamp(kb, along, kb_dim(kb, b->length));
  return kb_load(kb, diagonal, index);
}

static status check_packed(struct op_call *c, const struct flow_value *d, const struct band *b, int *batch) {
  bool several = b->are == SEVERAL;
  *batch = d->rank - 1 - several;
  if (*batch < 0)
    return fail(INVALID_ARGUMENT, "diagonal must be at least %d-dim, received shape: %s", 1 + several, op_shape_text(c, d->rank, d->dims));
  if (!several)
    return OK;
  struct kb guard;
  guard_begin(&guard, c);
  kb_check(&guard, kb_eq(&guard, kb_dim(&guard, d->dims[*batch]), count_of(&guard, b)), INVALID_ARGUMENT,
           "The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index range.", NO_EXPR,
           NO_EXPR);
  return guard_finish(&guard);
}

/* The rows and columns that diagonals of b->length need. */
static void least_sizes(struct kb *kb, const struct band *b, expr_id *out) {
  expr_id length = kb_dim(kb, b->length), zero = kb_int(kb, 0);
  out[0] = kb_sub(kb, length, min_of(kb, upper_of(kb, b), zero));
  out[1] = kb_add(kb, length, max_of(kb, lower_of(kb, b), zero));
}

/* The rows and columns of the matrix: what is -1, or absent, is what the diagonals need. */
static void matrix_sizes(struct kb *kb, const struct band *b, expr_id *out) {
  expr_id least[2], wanted[2], is_open[2], none = kb_int(kb, -1);
  least_sizes(kb, b, least);
  for (int i = 0; i < 2; i++) {
    wanted[i] = b->wanted[i] ? kb_element(kb, b->wanted[i], 0) : none;
    is_open[i] = kb_eq(kb, wanted[i], none);
  }
  expr_id both = kb_and(kb, is_open[0], is_open[1]), square = max_of(kb, least[0], least[1]);
  for (int i = 0; i < 2; i++)
    out[i] = kb_select(kb, is_open[i], kb_select(kb, both, square, least[i]), wanted[i]);
}

static status matrix_size(struct op_call *c, struct band *b) {
  const char *names[] = {"num_rows", "num_cols"};
  expr_id size[2], least[2];
  for (uint32_t i = 0; i < 2; i++)
    if (op_takes(c, names[i]))
      TRY(op_input(c, op_arg_index(c, names[i]), &b->wanted[i]));
  struct kb guard;
  guard_begin(&guard, c);
  least_sizes(&guard, b, least);
  matrix_sizes(&guard, b, size);
  kb_check(&guard, kb_le(&guard, least[0], size[0]), INVALID_ARGUMENT, "The number of rows is too small: %d are needed, %d given", least[0],
           size[0]);
  kb_check(&guard, kb_le(&guard, least[1], size[1]), INVALID_ARGUMENT, "The number of columns is too small: %d are needed, %d given",
           least[1], size[1]);
  kb_check(&guard, kb_or(&guard, kb_eq(&guard, size[0], least[0]), kb_eq(&guard, size[1], least[1])), INVALID_ARGUMENT,
           "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.", NO_EXPR, NO_EXPR);
  TRY(guard_finish(&guard));
  return band_sizes(c, b, matrix_sizes, &b->rows, &b->columns);
}

static status padding_element(struct kb *kb, enum dtype dtype, struct element *out) {
  uint32_t at = op_arg_index(kb->c, "padding_value");
  value_id v;
  *out = at == UINT32_MAX ? kb_zero(kb, dtype) : (struct element){0};
  if (at == UINT32_MAX)
    return OK;
  TRY(op_input(kb->c, at, &v));
  *out = kb_load(kb, kb_in(kb, v), NULL);
  return OK;
}

static status make_matrix(struct op_call *c, struct band *b) {
  value_id v;
  int batch;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(check_packed(c, &x, b, &batch));
  if (batch + 2 > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", batch + 2);
  b->count = x.dims[batch];
  b->length = x.dims[x.rank - 1];
  TRY(matrix_size(c, b));
  TRY(check_band_index(c, b));
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[batch] = b->rows;
  dims[batch + 1] = b->columns;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, batch + 2, dims);
  struct element padding;
  TRY(padding_element(&kb, x.dtype, &padding));
  expr_id at[LIMIT_RANK], inside;
  kb_loops(&kb, LOOP_PAR, batch + 2, dims, at);
  struct element e = load_diagonal(&kb, b, in, batch, at, &inside);
  kb_store(&kb, out, at, f_select(&kb.f, real_element(inside), e, padding));
  kb_close(&kb, batch + 2);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_matrix_diag(struct op_call *c) {
  value_id v;
  struct band b;
  TRY(op_input(c, 0, &v));
  TRY(read_band(c, &b));
  if (b.are == ONE_OR_SEVERAL && op_value(c, v)->rank < 2)
    TRY(settle_band(c, &b, false));
  return build_band(c, &b, make_matrix);
}

static status matrix_input(struct op_call *c, value_id *v, struct band *b) {
  TRY(op_input(c, 0, v));
  struct flow_value x = *op_value(c, *v);
  if (x.rank < 2)
    return fail(INVALID_ARGUMENT, "input must be at least 2-dim, received shape: %s", op_shape_text(c, x.rank, x.dims));
  b->rows = x.dims[x.rank - 2];
  b->columns = x.dims[x.rank - 1];
  TRY(check_band_index(c, b));
  return band_sizes(c, b, packed_sizes, &b->count, &b->length);
}

static status take_diagonals(struct op_call *c, struct band *b) {
  value_id v;
  TRY(matrix_input(c, &v, b));
  struct flow_value x = *op_value(c, v);
  bool several = b->are == SEVERAL;
  int batch = x.rank - 2, rank = batch + 1 + several;
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[batch] = b->count;
  dims[rank - 1] = b->length;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, rank, dims);
  struct element padding;
  TRY(padding_element(&kb, x.dtype, &padding));
  expr_id at[LIMIT_RANK], from[LIMIT_RANK], length, first, zero = kb_int(&kb, 0), k = upper_of(&kb, b);
  kb_loops(&kb, LOOP_PAR, rank, dims, at);
  k = several ? kb_sub(&kb, k, at[batch]) : k;
  diagonal_row(&kb, b, k, &length, &first);
  expr_id along = kb_sub(&kb, at[rank - 1], first), inside = kb_in_range(&kb, along, length);
  memcpy(from, at, sizeof at);
  from[batch] = kb_clamp(&kb, kb_sub(&kb, along, min_of(&kb, k, zero)), kb_dim(&kb, b->rows));
  from[batch + 1] = kb_clamp(&kb, kb_add(&kb, along, max_of(&kb, k, zero)), kb_dim(&kb, b->columns));
  kb_store(&kb, out, at, f_select(&kb.f, real_element(inside), kb_load(&kb, in, from), padding));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_matrix_diag_part(struct op_call *c) {
  struct band b;
  TRY(read_band(c, &b));
  return build_band(c, &b, take_diagonals);
}

status build_matrix_set_diag(struct op_call *c) {
  value_id v, diagonal;
  struct band b;
  int batch;
  TRY(read_band(c, &b));
  TRY(matrix_input(c, &v, &b));
  TRY(op_input(c, 1, &diagonal));
  struct flow_value x = *op_value(c, v), d = *op_value(c, diagonal);
  if (b.are == ONE_OR_SEVERAL)
    TRY(settle_band(c, &b, d.rank == x.rank));
  TRY(check_packed(c, &d, &b, &batch));
  if (batch != x.rank - 2)
    return fail(INVALID_ARGUMENT, "diagonal must have %d batch dimensions, received shape: %s", x.rank - 2,
                op_shape_text(c, d.rank, d.dims));
  for (int i = 0; i < batch; i++)
    TRY(op_equal_dims(c, x.dims[i], d.dims[i], "batch dimensions of input and diagonal"));
  TRY(op_equal_dims(c, d.dims[d.rank - 1], b.length, "the length of the diagonal and that of the input's"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), values = kb_in(&kb, diagonal), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], inside;
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  struct element e = load_diagonal(&kb, &b, values, batch, at, &inside);
  kb_store(&kb, out, at, f_select(&kb.f, real_element(inside), e, kb_load(&kb, in, at)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
