/* tensor.h: a dense tensor in memory with its type and shape, counted.
 *
 * The runtime's currency where a value outlives a kernel: feeds, fetches, queue elements, variables, wire messages.
 * Elements are row-major and packed; strings are struct string_view whose bytes belong to the tensor (`bytes`).
 * Threads: retain and release from any thread; contents are read-only once shared.
 */
#ifndef TFC_BASE_TENSOR_H
#define TFC_BASE_TENSOR_H

#include <stdbool.h>
#include <stdint.h>
#include "base/dtype.h"
#include "base/limits.h"
#include "base/status.h"

struct shape {
  int rank;
  int64_t dims[LIMIT_RANK];
};

struct tensor {
  enum dtype dtype;
  struct shape shape;
  void *data;    /* aligned to 64; NULL when it has no elements */
  void *bytes;   /* the bytes of a string tensor's elements, or NULL */
  int64_t count; /* elements */
  _Atomic int references;
  void (*release_data)(struct tensor *); /* how to give back data; NULL: free() of data and bytes */
  void *owner;                           /* for release_data */
};

/* The number of elements; -1 when a dimension is negative or the product is above LIMIT_ELEMENTS. */
int64_t shape_count(const struct shape *shape);
/* The error of a shape that has no such number. As in TensorFlow a shape whose elements an int64 can count is one for which there is no
 * memory, RESOURCE_EXHAUSTED; any other is INVALID_ARGUMENT. */
status shape_refuse(const struct shape *shape);
bool shape_equal(const struct shape *a, const struct shape *b);
/* "[2,3]" into a buffer of the calling thread (4 in turn). */
const char *shape_text(const struct shape *shape);

/* A new tensor with undefined elements (strings: empty), one reference. RESOURCE_EXHAUSTED without memory,
 * INVALID_ARGUMENT for a shape that is none. */
status tensor_create(enum dtype dtype, const struct shape *shape, struct tensor **out);
/* A copy with memory of its own (strings: bytes too). */
status tensor_clone(const struct tensor *tensor, struct tensor **out);
/* A copy of `count` elements at data, of the shape: strings' bytes are copied too. */
status tensor_copy_in(enum dtype dtype, const struct shape *shape, const void *data, struct tensor **out);
/* Takes a new tensor whose strings, if it is of strings, still lie elsewhere: they get bytes of its own. Released on failure. */
status tensor_own_strings(struct tensor *tensor, struct tensor **out);
/* Whether dtype, shape and elements are the same: numbers by their bytes. Equal tensors have equal hashes. */
bool tensor_equal(const struct tensor *a, const struct tensor *b);
uint64_t tensor_hash(const struct tensor *tensor);
struct tensor *tensor_retain(struct tensor *tensor);
void tensor_release(struct tensor *tensor);            /* accepts NULL */
int64_t tensor_byte_size(const struct tensor *tensor); /* of data, without the strings' bytes */

#endif
