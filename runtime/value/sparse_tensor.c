/* sparse_tensor.c: what must hold of a sparse tensor. */
#include "runtime/value/sparse_tensor.h"

#include <stdio.h>

status sparse_tensor_read(const struct tensor *indices, const struct tensor *values, const struct tensor *shape,
                          struct sparse_tensor *out) {
  static const int64_t none[1];
  if (indices->shape.rank != 2)
    return fail(INVALID_ARGUMENT, "Sparse indices must be a matrix but have shape %s", shape_text(&indices->shape));
  if (values->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Sparse values must be a vector but have shape %s", shape_text(&values->shape));
  if (shape->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Sparse shape must be a vector but has shape %s", shape_text(&shape->shape));
  if (indices->shape.dims[0] != values->count)
    return fail(INVALID_ARGUMENT, "Number of elements in indices (%lld) and values (%lld) do not match", (long long)indices->shape.dims[0],
                (long long)values->count);
  if (indices->shape.dims[1] != shape->count)
    return fail(INVALID_ARGUMENT, "Index rank (%lld) and shape rank (%lld) do not match", (long long)indices->shape.dims[1],
                (long long)shape->count);
  *out = (struct sparse_tensor){indices->data ? indices->data : none, values, shape->data ? shape->data : none, values->count,
                                (int)shape->count};
  return OK;
}

static const char *index_text(const struct sparse_tensor *s, int64_t entry) {
  static _Thread_local char text[256];
  size_t used = 0;
  text[0] = 0;
  for (int d = 0; d < s->rank && used < sizeof text - 24; d++)
    used += (size_t)snprintf(text + used, sizeof text - used, d ? ",%lld" : "%lld", (long long)sparse_index(s, entry, d));
  return text;
}

static status check_bounds(const struct sparse_tensor *s, int64_t entry) {
  for (int d = 0; d < s->rank; d++)
    if (sparse_index(s, entry, d) < 0 || sparse_index(s, entry, d) >= s->dims[d])
      return fail(INVALID_ARGUMENT, "indices[%lld] = [%s] is out of bounds: need 0 <= index < %lld in dimension %d", (long long)entry,
                  index_text(s, entry), (long long)s->dims[d], d);
  return OK;
}

status sparse_tensor_check_bounds(const struct sparse_tensor *s) {
  for (int64_t i = 0; i < s->count; i++)
    TRY(check_bounds(s, i));
  return OK;
}

status sparse_tensor_check_order(const struct sparse_tensor *s) {
  for (int64_t i = 0; i < s->count; i++) {
    int order = i == 0 ? 1 : 0;
    for (int d = 0; d < s->rank && order == 0; d++)
      order = (sparse_index(s, i, d) > sparse_index(s, i - 1, d)) - (sparse_index(s, i, d) < sparse_index(s, i - 1, d));
    TRY(check_bounds(s, i));
    if (order <= 0)
      return fail(INVALID_ARGUMENT, "indices[%lld] = [%s] is %s", (long long)i, index_text(s, i),
                  order < 0 ? "out of order. Many sparse ops require sorted indices" : "repeated");
  }
  return OK;
}
