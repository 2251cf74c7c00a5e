/* string_output.c: offsets become pointers at the end, when the block does not move any more. */
#include "runtime/text/string_output.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

status string_output_begin(struct string_output *out, const struct shape *shape, struct tensor **place) {
  memset(out, 0, sizeof *out);
  TRY(tensor_create(DTYPE_STRING, shape, &out->tensor));
  *place = out->tensor;
  return OK;
}

void string_output_add(struct string_output *out, const void *data, size_t size) {
  if (out->failed || size == 0)
    return;
  if (size > out->capacity - out->used) {
    size_t capacity = out->used + size > SIZE_MAX / 4 ? 0 : (out->used + size) * 2;
    void *grown = capacity ? realloc(out->tensor->bytes, capacity) : NULL;
    if (!grown) {
      out->failed = true;
      return;
    }
    out->tensor->bytes = grown;
    out->capacity = capacity;
  }
  memcpy((char *)out->tensor->bytes + out->used, data, size);
  out->used += size;
  if (out->at < out->tensor->count)
    ((struct string_view *)out->tensor->data)[out->at].size += size;
}

void string_output_next(struct string_output *out) { out->at++; }

void string_output_put(struct string_output *out, const void *data, size_t size) {
  string_output_add(out, data, size);
  string_output_next(out);
}

status string_output_end(struct string_output *out) {
  struct string_view *views = out->tensor->data;
  const char *at = out->tensor->bytes ? out->tensor->bytes : "";
  for (int64_t i = 0; i < out->tensor->count; i++) {
    views[i].data = at;
    at += views[i].size;
  }
  return out->failed ? fail(RESOURCE_EXHAUSTED, "no memory for the strings of a tensor") : OK;
}
