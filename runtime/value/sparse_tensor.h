/* sparse_tensor.h: the three tensors of a sparse tensor as host functions see them: indices [count, rank], values [count], a
 * shape [rank]. Nothing is copied: it lives as long as the tensors. */
#ifndef TFC_RUNTIME_VALUE_SPARSE_TENSOR_H
#define TFC_RUNTIME_VALUE_SPARSE_TENSOR_H

#include "base/tensor.h"

struct sparse_tensor {
  const int64_t *indices; /* [count, rank]; never NULL, also without entries */
  const struct tensor *values;
  const int64_t *dims; /* [rank] */
  int64_t count;
  int rank;
};

/* INVALID_ARGUMENT when ranks or sizes do not fit each other. */
status sparse_tensor_read(const struct tensor *indices, const struct tensor *values, const struct tensor *shape, struct sparse_tensor *out);
/* INVALID_ARGUMENT for an index out of bounds. */
status sparse_tensor_check_bounds(const struct sparse_tensor *s);
/* Also for one that does not come after the one before it in row-major order. */
status sparse_tensor_check_order(const struct sparse_tensor *s);
static inline int64_t sparse_index(const struct sparse_tensor *s, int64_t entry, int d) { return s->indices[entry * s->rank + d]; }

#endif
