/* ops_batch.c: batching of what several calls bring: Batch, Unbatch, UnbatchGrad, BatchFunction. A call here is a batch of its own,
 * which is one of the ways that TensorFlow may put them together: no call waits for another one.
 *
 * What a function makes of a row must not depend on the others, so that rows of padding need not be there either. */
#include <string.h>

#include "ir/lower/lower_walk.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"

/* The rows that come in: the same number for every tensor, at most max_batch_size. */
static status check_rows(struct op_call *c, uint32_t count, dim *rows) {
  for (uint32_t i = 0; i < count; i++) {
    value_id v;
    TRY(op_input(c, i, &v));
    c->in[i].value = v;
    if (op_value(c, v)->rank == 0)
      return fail(INVALID_ARGUMENT, "Batching input tensors must have at least one dimension.");
    dim n = op_value(c, v)->dims[0];
    *rows = i == 0 ? n : *rows;
    TRY(op_equal_dims(c, *rows, n, "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size."));
  }
  int64_t most = node_attr_int(c->node, "max_batch_size", 0);
  return op_require_le(c, *rows, op_dim(c, most), "Task size %d is larger than maximum input batch size %d");
}

/* The tensors as they came, the index of the batch, and a number for the call. */
status build_batch(struct op_call *c) {
  struct flow_node *n;
  dim rows, index[2] = {op_dim(c, 1), op_dim(c, 3)};
  const struct attr_value *allowed = node_attr(c->node, "allowed_batch_sizes");
  TRY(check_rows(c, c->in_count, &rows));
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  dim padded = allowed && allowed->list.count ? op_new_symbol(c) : rows;
  for (uint32_t i = 0; i < c->in_count; i++) {
    struct flow_value x = *op_value(c, n->inputs.items[i]);
    x.dims[0] = padded;
    op_host_output(c, n, i, x.rank, x.dims);
  }
  op_host_output(c, n, c->in_count, 2, index);
  op_host_output(c, n, c->in_count + 1, 0, NULL);
  return OK;
}

/* The rows of the batch that are this call's. UnbatchGrad: the gradient of all rows. */
status build_unbatch(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  bool gradient = c->in_count == 4;
  struct flow_value x = *op_value(c, n->inputs.items[gradient ? 2 : 0]);
  const struct flow_value *id = op_value(c, n->inputs.items[gradient ? 3 : 2]), *index = op_value(c, n->inputs.items[1]);
  if (id->rank != 0)
    return fail(INVALID_ARGUMENT, "Expected `id` to be scalar. Received shape %s", op_shape_text(c, id->rank, id->dims));
  if (!gradient && index->rank != 2)
    return fail(INVALID_ARGUMENT, "Wrong shape for index tensor: %s", op_shape_text(c, index->rank, index->dims));
  if (x.rank == 0)
    return fail(INVALID_ARGUMENT, "a batch must have at least one dimension");
  x.dims[0] = op_new_symbol(c);
  op_host_output(c, n, 0, x.rank, x.dims);
  return OK;
}

status build_batch_function(struct op_call *c) {
  const struct attr_value *f = node_attr(c->node, "f"), *in = node_attr(c->node, "Tin");
  dim rows;
  if (!f || f->kind != ATTR_FUNC)
    return fail(INVALID_ARGUMENT, "no attribute 'f'");
  TRY(check_rows(c, in->list.count, &rows));
  if (op_dim_value(c, rows) == 0) {
    for (uint32_t i = 0; i < c->out_count; i++) /* whatever the function's results look like */
      op_set_output(c, i, op_constant(c, op_output_dtype(c, i), 1, &rows, arena_alloc_aligned(op_arena(c), 16, 64)));
    return OK;
  }
  TRY(lower_call_as_written(c, f->func));
  for (uint32_t i = 0; i < c->out_count; i++) {
    if (!c->out[i].value || op_value(c, c->out[i].value)->rank == 0)
      return fail(FAILED_PRECONDITION, "Batched output tensor has 0 dimensions");
    TRY(op_equal_dims(c, op_value(c, c->out[i].value)->dims[0], rows,
                      "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input tensors"));
  }
  return OK;
}
