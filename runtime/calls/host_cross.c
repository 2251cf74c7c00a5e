/* host_cross.c: crossed features: for each row, every way to take one feature of each column, as joined strings or as one hash.
 *
 * A column is a ragged, sparse or dense tensor of strings or int64, seen as row splits over its values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/text/element_number.h"
#include "runtime/text/string_hash.h"
#include "runtime/text/string_output.h"
#include "runtime/value/sparse_tensor.h"

struct column {
  const struct tensor *values;
  int64_t *from; /* [rows + 1]; a sparse tensor's rows may leave values out: then `to` differs */
  int64_t *to;
  bool sparse;
  uint64_t *hashes; /* of each value; NULL: not asked for */
};
struct cross {
  struct host_call *call;
  struct column *columns;
  uint32_t count;
  int64_t rows;    /* -1: no column has said it */
  int64_t *starts; /* [rows + 1]: the first cross of each row */
  int64_t *place;  /* of the cross that is being made: its value in each column */
  /* hashes */
  bool hashed, strong, seeded; /* seeded: begins with `seed`, not with the first feature */
  bool salted;                 /* integers of sparse columns are hashed, too */
  uint64_t seed, key[2];
  int64_t buckets;
  struct string_view separator;
};

/* ---- columns ---- */

static status set_rows(struct cross *c, int64_t rows, uint32_t i) {
  if (c->rows < 0)
    c->rows = rows;
  return rows == c->rows
         ? OK
         : fail(INVALID_ARGUMENT, "Expected batch size %lld got %lld at position %u", (long long)c->rows, (long long)rows, i);
}

static status column_begin(struct cross *c, const struct tensor *values, struct column **out) {
  struct column *column = &c->columns[c->count++];
  *out = column;
  column->values = values;
  column->from = calloc((size_t)(c->rows > 0 ? c->rows : 0) + 1, sizeof *column->from);
  column->to = calloc((size_t)(c->rows > 0 ? c->rows : 0) + 1, sizeof *column->to);
  return column->from && column->to ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a column");
}

static status dense_column(struct cross *c, const struct tensor *values, uint32_t i) {
  struct column *column;
  if (values->shape.rank != 2)
    return fail(INVALID_ARGUMENT, "Dense inputs should be a matrix but received shape %s at position %u", shape_text(&values->shape), i);
  TRY(set_rows(c, values->shape.dims[0], i));
  TRY(column_begin(c, values, &column));
  for (int64_t r = 0; r < c->rows; r++) {
    column->from[r] = r * values->shape.dims[1];
    column->to[r] = (r + 1) * values->shape.dims[1];
  }
  return OK;
}

/* `skips`: entries of rows out of order belong to the row that is being read, as ragged crosses take them. */
static status sparse_column(struct cross *c, uint32_t indices, uint32_t values, uint32_t shape, uint32_t i, bool skips) {
  struct sparse_tensor s;
  struct column *column;
  TRY(sparse_tensor_read(&c->call->inputs[indices], &c->call->inputs[values], &c->call->inputs[shape], &s));
  if (s.rank != 2)
    return fail(INVALID_ARGUMENT, "shape should imply a 2D tensor, but got rank %d at position %u", s.rank, i);
  if (s.dims[0] < 0 || s.dims[0] > INT32_MAX)
    return fail(INVALID_ARGUMENT, "%lld is no batch size, at position %u", (long long)s.dims[0], i);
  TRY(set_rows(c, s.dims[0], i));
  TRY(column_begin(c, s.values, &column));
  column->sparse = true;
  int64_t at = 0;
  for (int64_t r = 0; r < c->rows; r++) {
    column->from[r] = at;
    while (at < s.count && (skips ? sparse_index(&s, at, 0) <= r : sparse_index(&s, at, 0) == r))
      at++;
    column->to[r] = at;
  }
  return OK;
}

static status ragged_column(struct cross *c, const struct tensor *values, const struct tensor *splits, uint32_t i) {
  struct column *column;
  if (values->shape.rank != 1 || splits->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "tf.ragged.cross only supports inputs with rank=2.");
  if (splits->count < 1 || element_int(splits, 0) != 0 || element_int(splits, splits->count - 1) != values->count)
    return fail(INVALID_ARGUMENT, "Invalid ragged splits: they must begin with 0 and end with the number of ragged values (%lld)",
                (long long)values->count);
  TRY(set_rows(c, splits->count - 1, i));
  TRY(column_begin(c, values, &column));
  for (int64_t r = 0; r < c->rows; r++) {
    column->from[r] = element_int(splits, r);
    column->to[r] = element_int(splits, r + 1);
    if (column->to[r] < column->from[r])
      return fail(INVALID_ARGUMENT, "Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[%lld]=%lld",
                  (long long)r + 1, (long long)column->to[r]);
  }
  return OK;
}

static status count_crosses(struct cross *c, int64_t *longest) {
  c->rows = c->rows < 0 ? 0 : c->rows;
  c->starts = calloc((size_t)c->rows + 1, sizeof *c->starts);
  if (!c->starts)
    return fail(RESOURCE_EXHAUSTED, "no memory for crosses");
  *longest = 0;
  for (int64_t r = 0; r < c->rows; r++) {
    int64_t count = 1;
    for (uint32_t i = 0; i < c->count; i++)
      if (__builtin_mul_overflow(count, c->columns[i].to[r] - c->columns[i].from[r], &count) || count > LIMIT_ELEMENTS)
        return fail(RESOURCE_EXHAUSTED, "row %lld has too many crosses", (long long)r);
    *longest = count > *longest ? count : *longest;
    c->starts[r + 1] = c->starts[r] + count;
    if (c->starts[r + 1] > LIMIT_ELEMENTS)
      return fail(RESOURCE_EXHAUSTED, "%lld crosses", (long long)c->starts[r + 1]);
  }
  return OK;
}

/* ---- one cross ---- */

static void first_cross(struct cross *c, int64_t row) {
  for (uint32_t i = 0; i < c->count; i++)
    c->place[i] = c->columns[i].from[row];
}

/* The last column changes fastest. */
static void next_cross(struct cross *c, int64_t row) {
  for (uint32_t i = c->count; i-- > 0;) {
    if (++c->place[i] < c->columns[i].to[row])
      return;
    c->place[i] = c->columns[i].from[row];
  }
}

static uint64_t hash_feature(const struct cross *c, const struct column *column, int64_t at) {
  if (column->values->dtype == DTYPE_STRING) {
    const struct string_view *text = (const struct string_view *)column->values->data + at;
    return c->strong ? hash_sip(c->key[0], c->key[1], text->data, text->size) : hash_farm(text->data, text->size);
  }
  int64_t number = element_int(column->values, at);
  if (c->strong) /* only half of it, as in TensorFlow */
    return hash_sip(c->key[0], c->key[1], &number, 4);
  if (c->salted && column->sparse)
    return hash_farm(&number, 4);
  return (uint64_t)number;
}

/* Once for each value, which may take part in many crosses. */
static status hash_values(const struct cross *c, struct column *column) {
  int64_t count = column->values->count;
  column->hashes = calloc((size_t)count + 1, sizeof *column->hashes);
  if (!column->hashes)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld hashes", (long long)count);
  for (int64_t i = 0; i < count; i++)
    column->hashes[i] = hash_feature(c, column, i);
  return OK;
}

static int64_t hash_cross(const struct cross *c) {
  uint64_t hash = c->seed;
  for (uint32_t i = 0; i < c->count; i++) {
    uint64_t feature = c->columns[i].hashes[c->place[i]];
    hash = i == 0 && !c->seeded ? feature : hash_join(hash, feature);
  }
  return (int64_t)(hash % (c->buckets > 0 ? (uint64_t)c->buckets : (uint64_t)INT64_MAX));
}

static void join_cross(const struct cross *c, struct string_output *out) {
  for (uint32_t i = 0; i < c->count; i++) {
    int64_t at = c->place[i];
    char digits[24];
    if (i)
      string_output_add(out, c->separator.data, c->separator.size);
    if (c->columns[i].values->dtype == DTYPE_STRING) {
      const struct string_view *text = (const struct string_view *)c->columns[i].values->data + at;
      string_output_add(out, text->data, text->size);
    } else {
      snprintf(digits, sizeof digits, "%lld", (long long)element_int(c->columns[i].values, at));
      string_output_add(out, digits, strlen(digits));
    }
  }
  string_output_next(out);
}

static status put_crosses(struct cross *c, uint32_t output) {
  struct string_output out;
  struct shape shape = {1, {c->starts[c->rows]}};
  c->place = calloc((size_t)c->count + 1, sizeof *c->place);
  if (!c->place)
    return fail(RESOURCE_EXHAUSTED, "no memory for crosses");
  for (uint32_t i = 0; i < c->count && c->hashed; i++)
    TRY(hash_values(c, &c->columns[i]));
  if (c->hashed)
    TRY(host_make_output(c->call, output, DTYPE_INT64, &shape));
  else
    TRY(string_output_begin(&out, &shape, &c->call->outputs[output]));
  for (int64_t r = 0; r < c->rows; r++) {
    first_cross(c, r);
    for (int64_t n = c->starts[r]; n < c->starts[r + 1]; n++, next_cross(c, r))
      if (c->hashed)
        ((int64_t *)c->call->outputs[output]->data)[n] = hash_cross(c);
      else
        join_cross(c, &out);
  }
  return c->hashed ? OK : string_output_end(&out);
}

static status cross_end(struct cross *c, status result) {
  for (uint32_t i = 0; i < c->count; i++) {
    free(c->columns[i].from);
    free(c->columns[i].to);
    free(c->columns[i].hashes);
  }
  free(c->columns);
  free(c->starts);
  free(c->place);
  return result;
}

/* ---- sparse crosses ---- */

static status put_sparse(struct cross *c) {
  int64_t longest;
  TRY(count_crosses(c, &longest));
  TRY(host_make_output(c->call, 0, DTYPE_INT64, &(struct shape){2, {c->starts[c->rows], 2}}));
  TRY(host_make_output(c->call, 2, DTYPE_INT64, &(struct shape){1, {2}}));
  int64_t *to = c->call->outputs[0]->data, *dims = c->call->outputs[2]->data;
  for (int64_t r = 0; r < c->rows; r++)
    for (int64_t n = 0; n < c->starts[r + 1] - c->starts[r]; n++) {
      *to++ = r;
      *to++ = n;
    }
  dims[0] = c->rows;
  dims[1] = longest;
  return put_crosses(c, 1);
}

/* Inputs: N times indices, N values, N shapes, then dense columns up to `end`. */
static status sparse_columns(struct cross *c, uint32_t end) {
  uint32_t n = (uint32_t)host_attr_int(c->call, "N", 0);
  c->columns = calloc(end + 1, sizeof *c->columns);
  if (!c->columns)
    return fail(RESOURCE_EXHAUSTED, "no memory for columns");
  for (uint32_t i = 0; i < n; i++)
    TRY(sparse_column(c, i, n + i, 2 * n + i, i, false));
  for (uint32_t i = 3 * n; i < end; i++)
    TRY(dense_column(c, &c->call->inputs[i], i - 3 * n));
  return put_sparse(c);
}

/* Strings are asked for as the inner form: then integers are not taken. */
static status check_inner(const struct host_call *call) {
  if (host_attr_int(call, "internal_type", DTYPE_STRING) != DTYPE_STRING)
    return OK;
  uint32_t n = (uint32_t)host_attr_int(call, "N", 0);
  for (uint32_t i = n; i < call->input_count; i++)
    if ((i < 2 * n || i >= 3 * n) && call->inputs[i].dtype != DTYPE_STRING)
      return fail(INVALID_ARGUMENT, "Input values should be of internal type string but received %s", dtype_name(call->inputs[i].dtype));
  return OK;
}

status host_sparse_cross(struct host_call *call) {
  struct cross c = {.call = call, .rows = -1, .seeded = true, .separator = {"_X_", 3}};
  c.hashed = host_attr_int(call, "out_type", DTYPE_STRING) == DTYPE_INT64;
  c.seed = (uint64_t)host_attr_int(call, "hash_key", 0);
  c.buckets = host_attr_int(call, "num_buckets", 0);
  status s = check_inner(call);
  return cross_end(&c, s == OK ? sparse_columns(&c, call->input_count) : s);
}

status host_sparse_cross_v2(struct host_call *call) {
  uint32_t end = call->input_count - 1;
  struct cross c = {.call = call, .rows = -1, .separator = host_scalar_string(&call->inputs[end])};
  if (call->inputs[end].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "Input separator should be a scalar, not of shape %s", shape_text(&call->inputs[end].shape));
  return cross_end(&c, sparse_columns(&c, end));
}

status host_sparse_cross_hashed(struct host_call *call) {
  uint32_t end = call->input_count - 3;
  const struct tensor *salt = &call->inputs[end + 2];
  struct cross c = {.call = call, .rows = -1, .hashed = true, .salted = true};
  if (salt->count != 2)
    return fail(INVALID_ARGUMENT, "Input \"salt\" must have length 2 but has length %lld", (long long)salt->count);
  c.buckets = host_scalar_int(&call->inputs[end]);
  c.strong = call->inputs[end + 1].count > 0 && *(const bool *)call->inputs[end + 1].data;
  memcpy(c.key, salt->data, sizeof c.key);
  return cross_end(&c, sparse_columns(&c, end));
}

/* ---- ragged crosses ---- */

static status ragged_columns(struct cross *c, struct string_view order) {
  const struct host_call *call = c->call;
  const struct program_attr *types = host_attr(call, "ragged_values_types");
  uint32_t ragged = types ? types->list.count : 0, sparse = (uint32_t)host_attr_int(call, "Nsparse", 0), next[3] = {0};
  uint32_t dense_at = 2 * ragged + 3 * sparse, dense = call->input_count - dense_at;
  c->columns = calloc(call->input_count + 1, sizeof *c->columns);
  if (!c->columns)
    return fail(RESOURCE_EXHAUSTED, "no memory for columns");
  if (order.size != ragged + sparse + dense)
    return fail(INVALID_ARGUMENT, "Invalid length for input_order");
  for (uint32_t i = 0; i < order.size; i++) {
    char kind = order.data[i];
    uint32_t *turn = kind == 'R' ? &next[0] : kind == 'S' ? &next[1] : &next[2];
    if (kind != 'R' && kind != 'S' && kind != 'D')
      return fail(INVALID_ARGUMENT, "Unexpected input_order value.");
    if (*turn >= (kind == 'R' ? ragged : kind == 'S' ? sparse : dense))
      return fail(INVALID_ARGUMENT, "input_order \"%.*s\" specifies reading an input of kind %c at index %u", (int)order.size, order.data,
                  kind, *turn);
    uint32_t n = (*turn)++, first = 2 * ragged + n;
    TRY(kind == 'R'   ? ragged_column(c, &call->inputs[n], &call->inputs[ragged + n], i)
        : kind == 'S' ? sparse_column(c, first, first + sparse, first + 2 * sparse, i, true)
                      : dense_column(c, &call->inputs[dense_at + n], i));
  }
  return OK;
}

static status put_ragged(struct cross *c) {
  int64_t longest;
  TRY(count_crosses(c, &longest));
  TRY(host_make_output(c->call, 1, (enum dtype)host_attr_int(c->call, "out_row_splits_type", DTYPE_INT64),
                       &(struct shape){1, {c->rows + 1}}));
  for (int64_t r = 0; r <= c->rows; r++)
    element_put_int(c->call->outputs[1], r, c->starts[r]);
  return put_crosses(c, 0);
}

status host_ragged_cross(struct host_call *call) {
  struct cross c = {.call = call, .rows = -1, .seeded = true, .separator = {"_X_", 3}};
  c.hashed = host_attr_int(call, "out_values_type", DTYPE_STRING) == DTYPE_INT64;
  c.seed = (uint64_t)host_attr_int(call, "hash_key", 0);
  c.buckets = host_attr_int(call, "num_buckets", 0);
  status s = ragged_columns(&c, host_attr_string(call, "input_order", ""));
  return cross_end(&c, s == OK ? put_ragged(&c) : s);
}
