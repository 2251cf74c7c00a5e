/* string_output.h: makes string tensors: elements are appended piece by piece, in order, into one growing block of bytes. */
#ifndef TFC_RUNTIME_TEXT_STRING_OUTPUT_H
#define TFC_RUNTIME_TEXT_STRING_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include "base/tensor.h"

struct string_output {
  struct tensor *tensor; /* its views hold offsets until string_output_end */
  size_t used, capacity;
  int64_t at;  /* the element being written */
  bool failed; /* memory ran out */
};

/* Makes a string tensor in *place, which owns it from now on, also while it is written. */
status string_output_begin(struct string_output *out, const struct shape *shape, struct tensor **place);
void string_output_add(struct string_output *out, const void *data, size_t size);
/* Closes the current element; the next one is empty. */
void string_output_next(struct string_output *out);
/* One whole element. */
void string_output_put(struct string_output *out, const void *data, size_t size);
/* RESOURCE_EXHAUSTED when memory ran out on the way. Elements that were not written are empty. */
status string_output_end(struct string_output *out);

#endif
