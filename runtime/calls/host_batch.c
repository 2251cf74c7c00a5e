/* host_batch.c: Batch, Unbatch, UnbatchGrad: every call is a batch of its own. */
#include <stdatomic.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/value/tensor_list.h"

/* How many rows a batch of n is padded to. */
static int64_t padded_size(const struct host_call *call, int64_t n) {
  const struct program_attr *sizes = host_attr(call, "allowed_batch_sizes");
  for (uint32_t i = 0; sizes && i < sizes->list.count; i++) {
    int64_t size = program_attr(call->program, sizes->list.first + i)->i;
    if (size >= n)
      return size;
  }
  return n;
}

/* Rows of padding repeat the first. */
static status pad(const struct tensor *from, int64_t rows, struct tensor **out) {
  struct shape shape = from->shape;
  struct tensor *raw;
  size_t row = from->shape.dims[0] ? (size_t)tensor_byte_size(from) / (size_t)from->shape.dims[0] : 0;
  shape.dims[0] = rows;
  TRY(tensor_create(from->dtype, &shape, &raw));
  for (int64_t i = 0; i < rows && row; i++)
    memcpy((char *)raw->data + (size_t)i * row, (const char *)from->data + (i < from->shape.dims[0] ? (size_t)i * row : 0), row);
  return tensor_own_strings(raw, out);
}

status host_batch(struct host_call *call) {
  static _Atomic int64_t calls;
  int64_t id = atomic_fetch_add(&calls, 1) + 1, rows = call->inputs[0].shape.dims[0], size = padded_size(call, rows);
  for (uint32_t i = 0; i < call->input_count; i++)
    TRY(pad(&call->inputs[i], rows ? size : 0, &call->outputs[i]));
  TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){2, {1, 3}}, (int64_t[]){id, 0, rows}, &call->outputs[call->input_count]));
  return tensor_copy_in(DTYPE_INT64, &(struct shape){0}, &id, &call->outputs[call->input_count + 1]);
}

status host_unbatch(struct host_call *call) {
  const struct tensor *data = &call->inputs[0], *index = &call->inputs[1];
  const int64_t *rows = index->data;
  int64_t id = host_scalar_int(&call->inputs[2]), count = index->shape.dims[0], total = 0, first = -1, length = 0;
  if (count > data->shape.dims[0])
    return fail(INVALID_ARGUMENT, "Wrong shape for index tensor. Expected 0th dimension size to be no greater than %lld; Got: %lld.",
                (long long)data->shape.dims[0], (long long)count);
  if (index->shape.dims[1] != 3)
    return fail(INVALID_ARGUMENT, "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: %lld.",
                (long long)index->shape.dims[1]);
  for (int64_t i = 0; i < count; i++) {
    int64_t size = rows[i * 3 + 2] - rows[i * 3 + 1];
    if (size < 0 || size > data->shape.dims[0] - total)
      return fail(INVALID_ARGUMENT, "Sum of split sizes must not exceed dim0-size of input tensor");
    if (rows[i * 3] == id) {
      first = total;
      length = size;
    }
    total += size;
  }
  if (first < 0)
    return fail(DEADLINE_EXCEEDED, "Batched data did not arrive within timeout window.");
  return tensor_rows(data, first, length, &call->outputs[0]);
}

status host_unbatch_grad(struct host_call *call) {
  const struct tensor *data = &call->inputs[0], *index = &call->inputs[1], *gradient = &call->inputs[2];
  int64_t id = host_scalar_int(&call->inputs[3]), count = index->shape.rank ? index->shape.dims[0] : 0;
  if (data->count == 0)
    return tensor_rows(gradient, 0, 0, &call->outputs[0]);
  if (index->count == 0)
    return fail(INVALID_ARGUMENT, "batch_index is empty while the tensor isn't.");
  if (index->count != count * 3)
    return fail(INVALID_ARGUMENT, "batch_index should contain %lld elements. Received %lld", (long long)count * 3, (long long)index->count);
  for (int64_t i = 0; i < count; i++)
    if (((const int64_t *)index->data)[i * 3] != id)
      return fail(UNIMPLEMENTED, "a batch with rows of several calls");
  return host_keep_input(call, 2, &call->outputs[0]);
}
