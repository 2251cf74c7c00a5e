/* tensor.c: tensors in memory. */
#include "base/tensor.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t shape_count(const struct shape *shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->rank; i++) {
    if (shape->dims[i] < 0 || __builtin_mul_overflow(count, shape->dims[i], &count) || count > LIMIT_ELEMENTS)
      return -1;
  }
  return count;
}

const char *shape_text(const struct shape *shape) {
  static _Thread_local char buffers[4][LIMIT_RANK * 21 + 3];
  static _Thread_local unsigned turn;
  char *text = buffers[turn++ % 4];
  size_t n = 0, size = sizeof buffers[0];
  n += (size_t)snprintf(text, size, "[");
  for (int i = 0; i < shape->rank; i++)
    n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? "," : "", (long long)shape->dims[i]);
  snprintf(text + n, size - n, "]");
  return text;
}

status tensor_create(enum dtype dtype, const struct shape *shape, struct tensor **out) {
  int64_t count = shape_count(shape);
  if (count < 0)
    return fail(INVALID_ARGUMENT, "%s is no shape of a tensor", shape_text(shape));
  struct tensor *t = calloc(1, sizeof *t);
  size_t size = ((size_t)count * dtype_size(dtype) + 63) & ~(size_t)63;
  void *data = size ? aligned_alloc(64, size) : NULL;
  if (!t || (size && !data)) {
    free(t);
    free(data);
    return fail(RESOURCE_EXHAUSTED, "no memory for a tensor of %s%s", dtype_name(dtype), shape_text(shape));
  }
  if (data && dtype == DTYPE_STRING)
    memset(data, 0, size);
  t->dtype = dtype;
  t->shape = *shape;
  t->data = data;
  t->count = count;
  t->references = 1;
  *out = t;
  return OK;
}

/* Copies the bytes behind `count` strings into one block and points the views there. */
static status copy_strings(const struct string_view *from, int64_t count, struct tensor *to) {
  uint64_t total = 0;
  for (int64_t i = 0; i < count; i++)
    total += from[i].size;
  char *bytes = total ? malloc(total) : NULL;
  if (total && !bytes)
    return fail(RESOURCE_EXHAUSTED, "no memory for %llu bytes of strings", (unsigned long long)total);
  struct string_view *views = to->data;
  to->bytes = bytes;
  for (int64_t i = 0; i < count; i++) {
    views[i] = (struct string_view){bytes, from[i].size};
    if (from[i].size)
      memcpy(bytes, from[i].data, from[i].size);
    bytes += from[i].size;
  }
  return OK;
}

status tensor_copy_in(enum dtype dtype, const struct shape *shape, const void *data, struct tensor **out) {
  struct tensor *t;
  TRY(tensor_create(dtype, shape, &t));
  if (dtype == DTYPE_STRING) {
    status s = copy_strings(data, t->count, t);
    if (s != OK) {
      tensor_release(t);
      return s;
    }
  } else if (t->count) {
    memcpy(t->data, data, (size_t)t->count * dtype_size(dtype));
  }
  *out = t;
  return OK;
}

status tensor_clone(const struct tensor *tensor, struct tensor **out) {
  return tensor_copy_in(tensor->dtype, &tensor->shape, tensor->data, out);
}

struct tensor *tensor_retain(struct tensor *tensor) {
  atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
  return tensor;
}

void tensor_release(struct tensor *tensor) {
  if (!tensor || atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) > 1)
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
