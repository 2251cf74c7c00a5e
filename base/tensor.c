/* tensor.c: tensors own their memory, or say in release_data how to give it back. */
#include "base/tensor.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/pages.h"

int64_t shape_count(const struct shape *shape) {
  if (shape->rank < 0 || shape->rank > LIMIT_RANK)
    return -1;
  int64_t count = 1;
  bool zero = false;
  for (int i = 0; i < shape->rank; i++) {
    int64_t d = shape->dims[i];
    if (d < 0)
      return -1;
    if (d == 0) {
      zero = true;
      continue;
    }
    if (d > LIMIT_ELEMENTS || count > LIMIT_ELEMENTS / d)
      return -1; /* also beside a zero: nobody means [0, 2^40, 2^40] */
    count *= d;
  }
  return zero ? 0 : count;
}

status shape_refuse(const struct shape *shape) {
  int64_t count = 1;
  bool counts = shape->rank >= 0 && shape->rank <= LIMIT_RANK;
  for (int i = 0; counts && i < shape->rank; i++)
    counts = shape->dims[i] >= 0 && !__builtin_mul_overflow(count, shape->dims[i], &count);
  return counts ? fail(RESOURCE_EXHAUSTED, "no memory for a tensor of shape %s", shape_text(shape))
                : fail(INVALID_ARGUMENT, "shape %s is not possible", shape_text(shape));
}

bool shape_equal(const struct shape *a, const struct shape *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank) == 0;
}

const char *shape_text(const struct shape *shape) {
  static _Thread_local char buffers[4][8 + LIMIT_RANK * 22];
  static _Thread_local unsigned turn;
  char *text = buffers[turn++ % 4];
  size_t used = 0, size = sizeof buffers[0];
  text[used++] = '[';
  for (int i = 0; i < shape->rank && i < LIMIT_RANK; i++)
    used += (size_t)snprintf(text + used, size - used, i ? ",%lld" : "%lld", (long long)shape->dims[i]);
  text[used++] = ']';
  text[used] = 0;
  return text;
}

status tensor_create(enum dtype dtype, const struct shape *shape, struct tensor **out) {
  int64_t count = shape_count(shape);
  if (!dtype_is_valid((int)dtype))
    return fail(INVALID_ARGUMENT, "%d is no element type", (int)dtype);
  if (count < 0)
    return fail(INVALID_ARGUMENT, "%s is no shape of a tensor", shape_text(shape));
  struct tensor *tensor = calloc(1, sizeof *tensor);
  if (!tensor)
    return fail(RESOURCE_EXHAUSTED, "no memory for a tensor");
  tensor->dtype = dtype;
  tensor->shape = *shape;
  tensor->count = count;
  atomic_init(&tensor->references, 1);
  if (count) {
    size_t size = ((size_t)count * dtype_size(dtype) + 63) & ~(size_t)63;
    tensor->data = pages_create(size);
    if (!tensor->data) {
      free(tensor);
      return fail(RESOURCE_EXHAUSTED, "no memory for a tensor of %zu bytes", size);
    }
    if (dtype == DTYPE_STRING)
      memset(tensor->data, 0, size);
  }
  *out = tensor;
  return OK;
}

static status copy_strings(struct tensor *tensor) {
  struct string_view *views = tensor->data;
  size_t total = 0;
  for (int64_t i = 0; i < tensor->count; i++) {
    if (views[i].size > SIZE_MAX / 2 - total)
      return fail(RESOURCE_EXHAUSTED, "no memory for the strings of a tensor");
    total += views[i].size;
  }
  char *bytes = malloc(total ? total : 1);
  if (!bytes)
    return fail(RESOURCE_EXHAUSTED, "no memory for %zu bytes of strings", total);
  size_t used = 0;
  for (int64_t i = 0; i < tensor->count; i++) {
    if (views[i].size)
      memcpy(bytes + used, views[i].data, views[i].size);
    views[i].data = bytes + used;
    used += views[i].size;
  }
  tensor->bytes = bytes;
  return OK;
}

status tensor_own_strings(struct tensor *tensor, struct tensor **out) {
  status result = tensor->dtype == DTYPE_STRING ? copy_strings(tensor) : OK;
  if (result == OK)
    *out = tensor;
  else
    tensor_release(tensor);
  return result;
}

status tensor_copy_in(enum dtype dtype, const struct shape *shape, const void *data, struct tensor **out) {
  struct tensor *tensor;
  TRY(tensor_create(dtype, shape, &tensor));
  if (tensor->count)
    memcpy(tensor->data, data, (size_t)tensor_byte_size(tensor));
  return tensor_own_strings(tensor, out);
}

status tensor_clone(const struct tensor *tensor, struct tensor **out) {
  return tensor_copy_in(tensor->dtype, &tensor->shape, tensor->data, out);
}

bool tensor_equal(const struct tensor *a, const struct tensor *b) {
  if (a->dtype != b->dtype || !shape_equal(&a->shape, &b->shape))
    return false;
  const struct string_view *x = a->data, *y = b->data;
  if (a->dtype != DTYPE_STRING)
    return a->count == 0 || memcmp(a->data, b->data, (size_t)tensor_byte_size(a)) == 0;
  for (int64_t i = 0; i < a->count; i++)
    if (!string_equal(x[i], y[i]))
      return false;
  return true;
}

uint64_t tensor_hash(const struct tensor *tensor) {
  uint64_t hash = hash_bytes(tensor->shape.dims, sizeof *tensor->shape.dims * (size_t)tensor->shape.rank, (uint64_t)tensor->dtype);
  const struct string_view *text = tensor->data;
  if (tensor->dtype != DTYPE_STRING)
    return hash_bytes(tensor->data, (size_t)tensor_byte_size(tensor), hash);
  for (int64_t i = 0; i < tensor->count; i++)
    hash = hash_bytes(text[i].data, text[i].size, hash);
  return hash;
}

struct tensor *tensor_retain(struct tensor *tensor) {
  int before = atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
  assert(before > 0);
  (void)before;
  return tensor;
}

void tensor_release(struct tensor *tensor) {
  if (!tensor || atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) != 1)
    return;
  if (tensor->release_data) {
    tensor->release_data(tensor);
  } else {
    free(tensor->data);
    free(tensor->bytes);
  }
  free(tensor);
}

int64_t tensor_byte_size(const struct tensor *tensor) { return tensor->count * (int64_t)dtype_size(tensor->dtype); }
