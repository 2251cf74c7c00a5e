/* queue_batch.c: the tuples that somebody has taken as outputs, stacked where there are many. */
#include "runtime/resource/queue_state.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/value/tensor_list.h"

/* Elements of one shape. */
static status stack_equal(const struct attempt *a, uint32_t component, enum dtype dtype, const struct shape *element, struct tensor **out) {
  struct tensor **parts = malloc(((size_t)a->count + 1) * sizeof *parts);
  if (!parts)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld elements", (long long)a->count);
  for (int64_t i = 0; i < a->count; i++)
    parts[i] = a->tuples[i][component];
  status result = tensors_stack(dtype, parts, a->count, element, out);
  free(parts);
  return result;
}

/* Copies one element into its row of the batch, padded with zeros; `axis` walks the dimensions. */
static void copy_padded(char *to, const struct shape *to_shape, const char *from, const struct shape *from_shape, int axis, int64_t unit) {
  int64_t to_step = unit, from_step = unit;
  for (int i = axis + 1; i < to_shape->rank; i++) {
    to_step *= to_shape->dims[i];
    from_step *= from_shape->dims[i];
  }
  if (axis == to_shape->rank) {
    memcpy(to, from, (size_t)unit);
    return;
  }
  if (to_step == from_step) {
    memcpy(to, from, (size_t)(from_step * from_shape->dims[axis]));
    return;
  }
  for (int64_t i = 0; i < from_shape->dims[axis]; i++)
    copy_padded(to + i * to_step, to_shape, from + i * from_step, from_shape, axis + 1, unit);
}

static void element_shape(const struct attempt *a, uint32_t component, struct shape *out) {
  *out = a->tuples[0][component]->shape;
  for (int64_t i = 1; i < a->count; i++)
    for (int d = 0; d < out->rank; d++)
      if (a->tuples[i][component]->shape.dims[d] > out->dims[d])
        out->dims[d] = a->tuples[i][component]->shape.dims[d];
}

static status stack_component(const struct queue *q, const struct attempt *a, uint32_t component, struct tensor **out) {
  const struct queue_component *spec = &q->spec.components[component];
  struct shape element = {0}, batch;
  if (a->count > 0)
    element_shape(a, component, &element);
  else
    element = spec->shape;
  for (int i = 0; i < element.rank; i++)
    element.dims[i] = element.dims[i] < 0 ? 0 : element.dims[i];
  if (element.rank == LIMIT_RANK)
    return fail(INVALID_ARGUMENT, "a batch of tensors of rank %d", LIMIT_RANK);
  if (q->spec.kind != QUEUE_PADDING || spec->dtype == DTYPE_VARIANT)
    return stack_equal(a, component, spec->dtype, &element, out);
  batch.rank = element.rank + 1;
  batch.dims[0] = a->count;
  memcpy(batch.dims + 1, element.dims, sizeof *element.dims * (size_t)element.rank);
  struct tensor *stacked;
  TRY(tensor_create(spec->dtype, &batch, &stacked));
  int64_t unit = (int64_t)dtype_size(spec->dtype), row = shape_count(&element) * unit;
  if (stacked->data)
    memset(stacked->data, 0, (size_t)tensor_byte_size(stacked));
  for (int64_t i = 0; i < a->count; i++) {
    const struct tensor *tensor = a->tuples[i][component];
    if (tensor->count > 0)
      copy_padded((char *)stacked->data + i * row, &element, tensor->data, &tensor->shape, 0, unit);
  }
  return tensor_own_strings(stacked, out);
}

status queue_attempt_outputs(const struct queue *q, struct attempt *a) {
  for (uint32_t i = 0; i < q->spec.component_count && i < a->call->output_count; i++) {
    if (a->many)
      TRY(stack_component(q, a, i, &a->call->outputs[i]));
    else
      a->call->outputs[i] = tensor_retain(a->tuples[0][i]);
  }
  return OK;
}
