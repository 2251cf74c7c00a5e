/* ops_diagonal.c: diagonals of tensors and matrices: Diag, DiagPart, MatrixBandPart and the MatrixDiag family.
 *
 * The MatrixDiag family has one meaning in three versions: diagonals lower..upper are packed as rows of a matrix, the
 * uppermost first, each aligned to the left or right end of its row. Version 1 knows the main diagonal only, version 2
 * aligns left. */
#include <string.h>

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

struct band {
  int64_t lower, upper;
  bool left_above, left_below; /* how diagonals above and below the main one are aligned in their rows */
  dim rows, columns, length;   /* of the matrix; of the longest diagonal */
};

static status read_band(struct op_call *c, struct band *b) {
  uint32_t at = op_arg_index(c, "k");
  const char *align = node_attr_string(c->node, "align", "LEFT_LEFT");
  *b = (struct band){.left_above = strncmp(align, "LEFT", 4) == 0, .left_below = strstr(align, "_LEFT") != NULL};
  if (at == UINT32_MAX)
    return OK;
  value_id k;
  int64_t *values;
  int count;
  TRY(op_input(c, at, &k));
  TRY(op_const_ints(c, k, "k", &values, &count));
  if (count < 1 || count > 2 || op_value(c, k)->rank > 1)
    return fail(INVALID_ARGUMENT, "diag_index must be a scalar or a vector with one or two elements");
  b->lower = values[0];
  b->upper = values[count - 1];
  if (b->lower > b->upper)
    return fail(INVALID_ARGUMENT, "lower_diag_index must not be larger than upper_diag_index: %lld > %lld", (long long)b->lower,
                (long long)b->upper);
  return OK;
}
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static status check_band_index(struct op_call *c, const struct band *b) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id rows = kb_dim(&guard, b->rows), columns = kb_dim(&guard, b->columns), zero = kb_int(&guard, 0);
  expr_id empty = kb_or(&guard, kb_eq(&guard, rows, zero), kb_eq(&guard, columns, zero));
  for (int i = 0; i < 2; i++) {
    expr_id k = kb_int(&guard, i ? b->upper : b->lower);
    expr_id inside = kb_and(&guard, kb_lt(&guard, zero, kb_add(&guard, k, rows)), kb_lt(&guard, k, columns));
    kb_check(&guard, kb_or(&guard, kb_eq(&guard, k, zero), kb_or(&guard, inside, empty)), INVALID_ARGUMENT,
             arena_printf(op_arena(c), "%s_diag_index is out of bound: %%d It must be between -num_rows and num_cols (%%d)",
                          i ? "upper" : "lower"),
             k, columns);
  }
  return guard_finish(&guard);
}

/* The longest diagonal of the matrix. */
static dim band_length(struct op_call *c, const struct band *b) {
  struct dim_table *t = op_dims(c);
  dim by_rows = dim_add(t, b->rows, op_dim(c, smaller(b->upper, 0)));
  dim by_columns = dim_sub(t, b->columns, op_dim(c, larger(b->lower, 0)));
  return dim_min(t, by_rows, by_columns);
}

/* The length of diagonal k and where its first element is in its row. */
static void diagonal_row(struct kb *kb, const struct band *b, expr_id k, expr_id *length, expr_id *first) {
  expr_id zero = kb_int(kb, 0), rows = kb_dim(kb, b->rows), columns = kb_dim(kb, b->columns);
  expr_id by_rows = kb_add(kb, rows, expr_binary(kb->k, SCALAR_MIN, k, zero));
  expr_id by_columns = kb_sub(kb, columns, expr_binary(kb->k, SCALAR_MAX, k, zero));
  *length = expr_binary(kb->k, SCALAR_MIN, by_rows, by_columns);
  expr_id above = expr_int(kb->k, DTYPE_BOOL, b->left_above), below = expr_int(kb->k, DTYPE_BOOL, b->left_below);
  expr_id left = kb_or(kb, kb_and(kb, kb_le(kb, zero, k), above), kb_and(kb, kb_le(kb, k, zero), below));
  *first = kb_select(kb, left, zero, kb_sub(kb, kb_dim(kb, b->length), *length));
}

/* The element of packed diagonals that belongs at (row, column); *inside: it is in the band. `batch` are the places before. */
static struct element load_diagonal(struct kb *kb, const struct band *b, uint32_t diagonal, int batch, const expr_id *at, expr_id *inside) {
  expr_id row = at[batch], column = at[batch + 1], k = kb_sub(kb, column, row), zero = kb_int(kb, 0);
  expr_id index[LIMIT_RANK], length, first;
  *inside = kb_and(kb, kb_le(kb, kb_int(kb, b->lower), k), kb_le(kb, k, kb_int(kb, b->upper)));
  diagonal_row(kb, b, b->lower == b->upper ? kb_int(kb, b->lower) : k, &length, &first);
  memcpy(index, at, sizeof *at * (size_t)batch);
  expr_id along = kb_add(kb, first, kb_sub(kb, column, expr_binary(kb->k, SCALAR_MAX, k, zero)));
  int n = batch;
  if (b->lower < b->upper)
    index[n++] = kb_clamp(kb, kb_sub(kb, kb_int(kb, b->upper), k), kb_int(kb, b->upper - b->lower + 1));
  index[n] = kb_clamp(kb, along, kb_dim(kb, b->length));
  return kb_load(kb, diagonal, index);
}

static status check_packed(struct op_call *c, const struct flow_value *d, const struct band *b, int *batch) {
  bool several = b->lower < b->upper;
  *batch = d->rank - 1 - several;
  if (*batch < 0)
    return fail(INVALID_ARGUMENT, "diagonal must be at least %d-dim, received shape: %s", 1 + several, op_shape_text(c, d->rank, d->dims));
  if (!several)
    return OK;
  dim count = op_dim(c, b->upper - b->lower + 1);
  if (dim_equal(op_dims(c), d->dims[*batch], count) == 0)
    return fail(INVALID_ARGUMENT,
                "The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index range.");
  return op_equal_dims(c, d->dims[*batch], count, "the number of diagonals");
}

/* num_rows or num_cols: -1, also when absent, for what the diagonals need. */
static status wanted_size(struct op_call *c, const char *name, dim *out) {
  uint32_t at = op_arg_index(c, name);
  *out = NO_DIM;
  if (at == UINT32_MAX)
    return OK;
  value_id v;
  int64_t known;
  TRY(op_input(c, at, &v));
  if (op_known_int(c, v, 0, &known) && known == -1)
    return OK;
  return op_bound_dims(c, v, 1, out);
}

static status matrix_size(struct op_call *c, struct band *b) {
  struct dim_table *t = op_dims(c);
  dim rows, columns, least_rows = dim_sub(t, b->length, op_dim(c, smaller(b->upper, 0)));
  dim least_columns = dim_add(t, b->length, op_dim(c, larger(b->lower, 0)));
  TRY(wanted_size(c, "num_rows", &rows));
  TRY(wanted_size(c, "num_cols", &columns));
  if (rows == NO_DIM && columns == NO_DIM)
    rows = columns = dim_max(t, least_rows, least_columns);
  b->rows = rows == NO_DIM ? least_rows : rows;
  b->columns = columns == NO_DIM ? least_columns : columns;
  TRY(op_require_le(c, least_rows, b->rows, "The number of rows is too small: %d are needed, %d given"));
  TRY(op_require_le(c, least_columns, b->columns, "The number of columns is too small: %d are needed, %d given"));
  if (dim_equal(t, b->rows, least_rows) == 0 && dim_equal(t, b->columns, least_columns) == 0)
    return fail(INVALID_ARGUMENT, "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.");
  return OK;
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

status build_matrix_diag(struct op_call *c) {
  value_id v;
  struct band b;
  int batch;
  TRY(op_input(c, 0, &v));
  TRY(read_band(c, &b));
  struct flow_value x = *op_value(c, v);
  TRY(check_packed(c, &x, &b, &batch));
  if (batch + 2 > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", batch + 2);
  b.length = x.dims[x.rank - 1];
  TRY(matrix_size(c, &b));
  TRY(check_band_index(c, &b));
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[batch] = b.rows;
  dims[batch + 1] = b.columns;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, batch + 2, dims);
  struct element padding;
  TRY(padding_element(&kb, x.dtype, &padding));
  expr_id at[LIMIT_RANK], inside;
  kb_loops(&kb, LOOP_PAR, batch + 2, dims, at);
  struct element e = load_diagonal(&kb, &b, in, batch, at, &inside);
  kb_store(&kb, out, at, f_select(&kb.f, real_element(inside), e, padding));
  kb_close(&kb, batch + 2);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

static status matrix_input(struct op_call *c, value_id *v, struct band *b) {
  TRY(op_input(c, 0, v));
  TRY(read_band(c, b));
  struct flow_value x = *op_value(c, *v);
  if (x.rank < 2)
    return fail(INVALID_ARGUMENT, "input must be at least 2-dim, received shape: %s", op_shape_text(c, x.rank, x.dims));
  b->rows = x.dims[x.rank - 2];
  b->columns = x.dims[x.rank - 1];
  b->length = band_length(c, b);
  return check_band_index(c, b);
}

status build_matrix_diag_part(struct op_call *c) {
  value_id v;
  struct band b;
  TRY(matrix_input(c, &v, &b));
  struct flow_value x = *op_value(c, v);
  bool several = b.lower < b.upper;
  int batch = x.rank - 2, rank = batch + 1 + several;
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[batch] = op_dim(c, b.upper - b.lower + 1);
  dims[rank - 1] = b.length;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, rank, dims);
  struct element padding;
  TRY(padding_element(&kb, x.dtype, &padding));
  expr_id at[LIMIT_RANK], from[LIMIT_RANK], length, first, zero = kb_int(&kb, 0);
  kb_loops(&kb, LOOP_PAR, rank, dims, at);
  expr_id k = several ? kb_sub(&kb, kb_int(&kb, b.upper), at[batch]) : kb_int(&kb, b.upper);
  diagonal_row(&kb, &b, k, &length, &first);
  expr_id along = kb_sub(&kb, at[rank - 1], first), inside = kb_in_range(&kb, along, length);
  memcpy(from, at, sizeof at);
  expr_id down = expr_binary(kb.k, SCALAR_MIN, k, zero), right = expr_binary(kb.k, SCALAR_MAX, k, zero);
  from[batch] = kb_clamp(&kb, kb_sub(&kb, along, down), kb_dim(&kb, b.rows));
  from[batch + 1] = kb_clamp(&kb, kb_add(&kb, along, right), kb_dim(&kb, b.columns));
  kb_store(&kb, out, at, f_select(&kb.f, real_element(inside), kb_load(&kb, in, from), padding));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_matrix_set_diag(struct op_call *c) {
  value_id v, diagonal;
  struct band b;
  int batch;
  TRY(matrix_input(c, &v, &b));
  TRY(op_input(c, 1, &diagonal));
  struct flow_value x = *op_value(c, v), d = *op_value(c, diagonal);
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
