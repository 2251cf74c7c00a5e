/* attr_hash.c: attribute values as one stream of bytes, in the words of runtime/program/program.h; runtime/master/master_attr.c reads the
 * same stream from a client's message. */
#include "ir/graph/attr_hash.h"

#include <string.h>

static uint64_t feed_i64(uint64_t hash, int64_t value) { return hash_bytes(&value, sizeof value, hash); }

static uint64_t feed_text(uint64_t hash, const char *data, uint64_t size) { return hash_bytes(data, size, feed_i64(hash, (int64_t)size)); }

static uint64_t feed_shape(uint64_t hash, const struct attr_shape *shape) {
  if (shape->unknown_rank)
    return feed_i64(hash, -1);
  hash = feed_i64(hash, shape->rank);
  for (int i = 0; i < shape->rank; i++)
    hash = feed_i64(hash, shape->dims[i]);
  return hash;
}

static uint64_t feed_tensor(uint64_t hash, const struct constant *tensor) {
  hash = feed_i64(feed_i64(hash, tensor->dtype), tensor->rank);
  for (int i = 0; i < tensor->rank; i++)
    hash = feed_i64(hash, tensor->dims[i]);
  if (tensor->dtype != DTYPE_STRING)
    return hash_bytes(tensor->data, (size_t)tensor->count * dtype_size(tensor->dtype), hash);
  const struct string_view *strings = tensor->data;
  for (int64_t i = 0; i < tensor->count; i++)
    hash = feed_text(hash, strings[i].data, strings[i].size);
  return hash;
}

/* False: a value that is not compared. */
static bool feed(uint64_t *hash, const struct attr_value *v) {
  float number = (float)v->f;
  *hash = feed_i64(*hash, v->kind);
  switch (v->kind) {
  case ATTR_STRING: *hash = feed_text(*hash, v->s.data, v->s.size); return true;
  case ATTR_INT:
  case ATTR_BOOL:
  case ATTR_TYPE: *hash = feed_i64(*hash, v->i); return true;
  case ATTR_FLOAT: *hash = hash_bytes(&number, sizeof number, *hash); return true;
  case ATTR_SHAPE: *hash = feed_shape(*hash, &v->shape); return true;
  case ATTR_TENSOR:
    if (!v->tensor || v->tensor->dtype == DTYPE_RESOURCE || v->tensor->dtype == DTYPE_VARIANT)
      return false;
    *hash = feed_tensor(*hash, v->tensor);
    return true;
  case ATTR_FUNC: *hash = feed_text(*hash, v->func->name, strlen(v->func->name)); return true;
  case ATTR_LIST:
    for (uint32_t i = 0; i < v->list.count; i++)
      if (!feed(hash, &v->list.items[i]))
        return false;
    return true;
  case ATTR_NONE:
  case ATTR_PLACEHOLDER: return false;
  }
  return false;
}

uint32_t attr_hash_value(const struct attr_value *value) {
  uint64_t hash = 0;
  if (!feed(&hash, value))
    return 0;
  return (uint32_t)hash ? (uint32_t)hash : 1;
}

uint32_t attr_hash_name(const char *name) { return (uint32_t)hash_bytes(name, strlen(name), 0); }
