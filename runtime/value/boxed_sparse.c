/* boxed_sparse.c: entries of rows are neighbours, so that taking apart is cutting, and stacking is joining. */
#include "runtime/value/boxed_sparse.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/value/sparse_tensor.h"
#include "runtime/value/tensor_list.h"

void boxed_sparse_deinit(struct boxed_sparse *box) {
  tensor_release(box->indices);
  tensor_release(box->values);
  tensor_release(box->shape);
}

void boxed_sparse_free(struct boxed_sparse *boxes, int64_t count) {
  for (int64_t i = 0; boxes && i < count; i++)
    boxed_sparse_deinit(&boxes[i]);
  free(boxes);
}

status boxed_sparse_input(const struct host_call *call, uint32_t first, struct boxed_sparse *out) {
  const struct tensor *indices = &call->inputs[first], *values = &call->inputs[first + 1], *shape = &call->inputs[first + 2];
  if (indices->shape.rank != 2 || values->shape.rank != 1 || shape->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Input indices should be a matrix, values and shape vectors, but received shapes %s, %s and %s",
                shape_text(&indices->shape), shape_text(&values->shape), shape_text(&shape->shape));
  TRY(host_keep_input(call, first, &out->indices));
  TRY(host_keep_input(call, first + 1, &out->values));
  return host_keep_input(call, first + 2, &out->shape);
}

/* ---- rows ---- */

/* Entries [from, to) without their first index; `shape`: that of a row. */
static status cut_row(const struct sparse_tensor *s, int64_t from, int64_t to, struct tensor *shape, struct boxed_sparse *out) {
  int inner = s->rank - 1;
  TRY(tensor_create(DTYPE_INT64, &(struct shape){2, {to - from, inner}}, &out->indices));
  for (int64_t i = from; i < to; i++)
    memcpy((int64_t *)out->indices->data + (i - from) * inner, s->indices + i * s->rank + 1, sizeof(int64_t) * (size_t)inner);
  out->shape = tensor_retain(shape);
  return tensor_rows(s->values, from, to - from, &out->values);
}

static status cut_rows(const struct sparse_tensor *s, struct boxed_sparse *boxes) {
  struct tensor *shape;
  TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){1, {s->rank - 1}}, s->dims + 1, &shape));
  status result = OK;
  for (int64_t row = 0, at = 0; row < s->dims[0] && result == OK; row++) {
    int64_t from = at;
    while (at < s->count && sparse_index(s, at, 0) == row)
      at++;
    result = cut_row(s, from, at, shape, &boxes[row]);
  }
  tensor_release(shape);
  return result;
}

status boxed_sparse_rows(const struct host_call *call, uint32_t first, struct boxed_sparse **out, int64_t *count) {
  struct sparse_tensor s;
  struct shape shape = {0};
  TRY(sparse_tensor_read(&call->inputs[first], &call->inputs[first + 1], &call->inputs[first + 2], &s));
  if (s.rank <= 1)
    return fail(INVALID_ARGUMENT, "Rank of input SparseTensor should be > 1, but saw rank: %d", s.rank);
  if (s.rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a sparse tensor of rank %d", s.rank);
  shape.rank = s.rank;
  memcpy(shape.dims, s.dims, sizeof *s.dims * (size_t)s.rank);
  if (shape_count(&shape) < 0 || s.dims[0] > LIMIT_ELEMENTS)
    return fail(INVALID_ARGUMENT, "%s is no shape of a tensor", shape_text(&shape));
  TRY(sparse_tensor_check_order(&s));
  struct boxed_sparse *boxes = calloc((size_t)s.dims[0] + 1, sizeof *boxes);
  if (!boxes)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld sparse tensors", (long long)s.dims[0]);
  status result = cut_rows(&s, boxes);
  if (result != OK) {
    boxed_sparse_free(boxes, s.dims[0]);
    return result;
  }
  *out = boxes;
  *count = s.dims[0];
  return OK;
}

/* ---- stacking ---- */

static status check_box(const struct boxed_sparse *b, int64_t i, enum dtype dtype, int64_t rank) {
  if (!b->indices || b->indices->dtype != DTYPE_INT64 || b->indices->shape.rank != 2)
    return fail(INVALID_ARGUMENT, "Expected serialized_sparse[%lld, 0] to represent an index matrix", (long long)i);
  if (!b->values || b->values->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Expected serialized_sparse[%lld, 1] to represent a values vector", (long long)i);
  if (b->values->dtype != dtype)
    return fail(INVALID_ARGUMENT, "Requested SparseTensor of type %s but SparseTensor[%lld].values.dtype() == %s", dtype_name(dtype),
                (long long)i, dtype_name(b->values->dtype));
  if (b->indices->shape.dims[0] != b->values->count)
    return fail(INVALID_ARGUMENT,
                "Expected row counts of SparseTensor[%lld].indices and SparseTensor[%lld].values to match but they do not: "
                "%lld vs. %lld",
                (long long)i, (long long)i, (long long)b->indices->shape.dims[0], (long long)b->values->count);
  if (!b->shape || b->shape->dtype != DTYPE_INT64 || b->shape->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Expected serialized_sparse[%lld, 2] to be a shape vector", (long long)i);
  if (b->indices->shape.dims[1] != b->shape->count)
    return fail(INVALID_ARGUMENT,
                "Expected column counts of SparseTensor[%lld].indices to match size of SparseTensor[%lld].shape but they "
                "do not: %lld vs. %lld",
                (long long)i, (long long)i, (long long)b->indices->shape.dims[1], (long long)b->shape->count);
  if (b->shape->count != rank)
    return fail(INVALID_ARGUMENT,
                "Inconsistent shape across SparseTensors: rank prior to SparseTensor[%lld] was: %lld but rank of "
                "SparseTensor[%lld] is: %lld",
                (long long)i, (long long)rank, (long long)i, (long long)b->shape->count);
  return OK;
}

/* The indices of a box behind its own place among the boxes. */
static int64_t *put_indices(const struct boxed_sparse *b, int64_t number, const struct shape *outer, int64_t rank, int64_t *to) {
  int64_t place[LIMIT_RANK];
  for (int d = outer->rank - 1; d >= 0; d--) {
    place[d] = number % outer->dims[d];
    number /= outer->dims[d];
  }
  for (int64_t i = 0; i < b->values->count; i++, to += outer->rank + rank) {
    memcpy(to, place, sizeof *to * (size_t)outer->rank);
    if (rank)
      memcpy(to + outer->rank, (const int64_t *)b->indices->data + i * rank, sizeof *to * (size_t)rank);
  }
  return to;
}

static status put_values(struct host_call *call, const struct boxed_sparse *boxes, int64_t count, int64_t total, enum dtype dtype) {
  struct tensor **parts = calloc((size_t)count + 1, sizeof *parts);
  if (!parts)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld sparse tensors", (long long)count);
  for (int64_t i = 0; i < count; i++)
    parts[i] = boxes[i].values;
  status s = tensor_join(dtype, &(struct shape){1, {total}}, parts, count, &call->outputs[1]);
  free(parts);
  return s;
}

status boxed_sparse_stack(struct host_call *call, const struct boxed_sparse *boxes, const struct shape *outer, enum dtype dtype) {
  int64_t count = shape_count(outer), total = 0, rank = boxes[0].shape ? boxes[0].shape->count : 0;
  for (int64_t i = 0; i < count; i++) {
    TRY(check_box(&boxes[i], i, dtype, rank));
    total += boxes[i].values->count;
  }
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){2, {total, outer->rank + rank}}));
  TRY(host_make_output(call, 2, DTYPE_INT64, &(struct shape){1, {outer->rank + rank}}));
  int64_t *to = call->outputs[0]->data, *dims = call->outputs[2]->data;
  for (int d = 0; d < outer->rank; d++)
    dims[d] = outer->dims[d];
  for (int64_t d = 0; d < rank; d++)
    dims[outer->rank + d] = 0;
  for (int64_t i = 0; i < count; i++) {
    to = put_indices(&boxes[i], i, outer, rank, to);
    for (int64_t d = 0; d < rank; d++) {
      int64_t size = ((const int64_t *)boxes[i].shape->data)[d];
      dims[outer->rank + d] = size > dims[outer->rank + d] ? size : dims[outer->rank + d];
    }
  }
  return put_values(call, boxes, count, total, dtype);
}
