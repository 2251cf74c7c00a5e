/* host_counts.c: how often each value occurs in each row, as a sparse tensor [rows, values]: of dense, sparse and ragged input.
 *
 * Every value that counts becomes an entry (row, value, weight); entries are sorted, stably, so that equal ones are added in
 * the order of the input. */
#include <stdlib.h>

#include "runtime/host/host.h"
#include "runtime/text/element_number.h"
#include "runtime/value/sparse_tensor.h"

struct entry {
  int64_t row, value, from; /* from: the element */
};
struct counted {
  const struct tensor *values, *weights; /* weights: NULL when each counts 1 */
  struct entry *entries;
  int64_t count, rows, largest, most; /* most: values from it on do not count; -1: all do */
  int rank;                           /* of the result: 1 or 2 */
};

static int compare_entries(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  if (x->row != y->row)
    return x->row < y->row ? -1 : 1;
  if (x->value != y->value)
    return x->value < y->value ? -1 : 1;
  return (x->from > y->from) - (x->from < y->from);
}

static status read_values(struct host_call *call, uint32_t values, uint32_t weights, struct counted *c) {
  c->values = &call->inputs[values];
  c->most = host_attr_int(call, "maxlength", -1);
  c->weights = call->inputs[weights].count > 0 ? &call->inputs[weights] : NULL;
  for (int64_t i = 0; i < c->values->count; i++)
    if (element_int(c->values, i) < 0)
      return fail(INVALID_ARGUMENT, "Input values must all be non-negative");
  const struct shape *x = &c->values->shape, *y = c->weights ? &c->weights->shape : NULL;
  if (y && !shape_equal(x, y))
    return fail(INVALID_ARGUMENT, "Weights and values must have the same shape. Weight shape: %s; values shape: %s", shape_text(y),
                shape_text(x));
  c->entries = malloc(sizeof *c->entries * (size_t)(c->values->count + 1));
  return c->entries ? OK : fail(RESOURCE_EXHAUSTED, "no memory for counts");
}

static void count_value(struct counted *c, int64_t row, int64_t i) {
  int64_t value = element_int(c->values, i);
  if (c->most >= 0 && value >= c->most)
    return;
  c->entries[c->count++] = (struct entry){row, value, i};
  c->largest = value > c->largest ? value : c->largest;
}

/* What entry number i adds to the result's element `to`: a weight, or one. */
static void add_entry(const struct counted *c, struct tensor *out, int64_t to, int64_t from, bool first) {
  if (out->dtype == DTYPE_FLOAT) {
    float *sum = (float *)out->data + to, w = c->weights ? ((const float *)c->weights->data)[from] : 1;
    *sum = first ? w : *sum + w;
  } else if (out->dtype == DTYPE_DOUBLE) {
    double *sum = (double *)out->data + to, w = c->weights ? ((const double *)c->weights->data)[from] : 1;
    *sum = first ? w : *sum + w;
  } else {
    uint64_t sum = first ? 0 : (uint64_t)element_int(out, to);
    element_put_int(out, to, (int64_t)(sum + (uint64_t)(c->weights ? element_int(c->weights, from) : 1)));
  }
}

static status put_outputs(struct host_call *call, struct counted *c) {
  if (c->count)
    qsort(c->entries, (size_t)c->count, sizeof *c->entries, compare_entries);
  int64_t distinct = 0;
  for (int64_t i = 0; i < c->count; i++)
    distinct += i == 0 || c->entries[i].row != c->entries[i - 1].row || c->entries[i].value != c->entries[i - 1].value;
  enum dtype dtype = (enum dtype)host_attr_int(call, "output_type", DTYPE_INT64);
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){2, {distinct, c->rank}}));
  TRY(host_make_output(call, 1, dtype, &(struct shape){1, {distinct}}));
  TRY(host_make_output(call, 2, DTYPE_INT64, &(struct shape){1, {c->rank}}));
  int64_t *indices = call->outputs[0]->data, *dims = call->outputs[2]->data, to = -1;
  bool binary = host_attr_int(call, "binary_output", 0);
  for (int64_t i = 0; i < c->count; i++) {
    const struct entry *e = &c->entries[i];
    bool first = i == 0 || e->row != e[-1].row || e->value != e[-1].value;
    to += first;
    if (binary)
      element_put_int(call->outputs[1], to, 1);
    else
      add_entry(c, call->outputs[1], to, e->from, first);
    if (c->rank == 2)
      indices[to * 2] = e->row;
    indices[to * c->rank + c->rank - 1] = e->value;
  }
  int64_t least = host_attr_int(call, "minlength", -1);
  dims[0] = c->rows;
  dims[c->rank - 1] = c->most >= 0 ? c->most : c->largest + 1 > least ? c->largest + 1 : least;
  return OK;
}

static status count_dense(struct host_call *call, struct counted *c) {
  const struct shape *shape = &call->inputs[0].shape;
  if (shape->rank != 1 && shape->rank != 2)
    return fail(INVALID_ARGUMENT, "Input must be a 1 or 2-dimensional tensor. Got: %s", shape_text(shape));
  TRY(read_values(call, 0, 1, c));
  c->rank = shape->rank;
  c->rows = shape->rank == 2 ? shape->dims[0] : 1;
  if (c->rows == 0)
    return fail(INVALID_ARGUMENT, "Invalid input: Shapes dimension cannot be 0.");
  for (int64_t i = 0, width = c->values->count / c->rows; i < c->values->count; i++)
    count_value(c, i / width, i);
  return put_outputs(call, c);
}

static status count_sparse(struct host_call *call, struct counted *c) {
  struct sparse_tensor s;
  TRY(sparse_tensor_read(&call->inputs[0], &call->inputs[1], &call->inputs[2], &s));
  if (s.rank == 0)
    return fail(INVALID_ARGUMENT, "The shape argument requires at least one element.");
  TRY(sparse_tensor_check_bounds(&s));
  TRY(read_values(call, 1, 3, c));
  c->rank = s.rank == 1 ? 1 : 2;
  c->rows = s.rank == 1 ? 1 : s.dims[0];
  if (c->rows <= 0 || c->rows >= INT32_MAX)
    return fail(INVALID_ARGUMENT, "Cannot allocate %lld batches, is the dense shape too wide?", (long long)c->rows);
  for (int64_t i = 0; i < c->values->count; i++)
    count_value(c, s.rank == 1 ? 0 : sparse_index(&s, i, 0), i);
  return put_outputs(call, c);
}

static status count_ragged(struct host_call *call, struct counted *c) {
  const struct tensor *splits = &call->inputs[0];
  const int64_t *at = splits->data;
  TRY(read_values(call, 1, 2, c));
  c->rank = 2;
  c->rows = splits->count - 1;
  if (c->rows < 1)
    return fail(INVALID_ARGUMENT, "Must provide at least 2 elements for the splits argument");
  if (at[0] != 0)
    return fail(INVALID_ARGUMENT, "Splits must start with 0, not with %lld", (long long)at[0]);
  if (at[c->rows] != c->values->count)
    return fail(INVALID_ARGUMENT, "Splits must end with the number of values, got %lld instead of %lld", (long long)at[c->rows],
                (long long)c->values->count);
  int64_t row = 0; /* rows that end before they begin hold nothing */
  for (int64_t i = 0; i < c->values->count; i++) {
    while (i >= at[row])
      row++;
    count_value(c, row - 1, i);
  }
  return put_outputs(call, c);
}

static status run(struct host_call *call, status (*count)(struct host_call *, struct counted *)) {
  struct counted c = {0};
  status s = count(call, &c);
  free(c.entries);
  return s;
}
status host_dense_count(struct host_call *call) { return run(call, count_dense); }
status host_sparse_count(struct host_call *call) { return run(call, count_sparse); }
status host_ragged_count(struct host_call *call) { return run(call, count_ragged); }
