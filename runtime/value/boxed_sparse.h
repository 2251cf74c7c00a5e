/* boxed_sparse.h: sparse tensors held one by one: serialized ones, and those of a map; taken apart by rows and stacked again. */
#ifndef TFC_RUNTIME_VALUE_BOXED_SPARSE_H
#define TFC_RUNTIME_VALUE_BOXED_SPARSE_H

#include "runtime/host/host.h"

struct boxed_sparse {
  struct tensor *indices, *values, *shape; /* a reference each, or NULL */
};

void boxed_sparse_deinit(struct boxed_sparse *box);
void boxed_sparse_free(struct boxed_sparse *boxes, int64_t count); /* the array, too; accepts NULL */
/* The sparse tensor of inputs first .. first + 2 as it is. */
status boxed_sparse_input(const struct host_call *call, uint32_t first, struct boxed_sparse *out);
/* Each row of the sparse tensor of inputs first .. first + 2, in an array of its own. */
status boxed_sparse_rows(const struct host_call *call, uint32_t first, struct boxed_sparse **out, int64_t *count);
/* Outputs indices, values, shape: the boxes, which lie in a tensor of shape `outer`, stacked; the others' largest sizes. */
status boxed_sparse_stack(struct host_call *call, const struct boxed_sparse *boxes, const struct shape *outer, enum dtype dtype);
/* The sparse tensor as three variants, as SerializeSparse makes them; its parts are retained. */
status boxed_sparse_variants(const struct boxed_sparse *box, struct tensor **out);

#endif
