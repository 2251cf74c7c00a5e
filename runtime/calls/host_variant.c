/* host_variant.c: variants put elsewhere: what kernels do for numbers. Elements are shared. */
#include <string.h>

#include "runtime/host/object.h"

/* Pack: behind each other on a new first dimension. */
status host_variant_pack(struct host_call *call) {
  const struct tensor *first, *part;
  TRY(objects_input(call, 0, &first));
  struct shape shape = {.rank = first->shape.rank + 1, .dims = {call->input_count}};
  memcpy(shape.dims + 1, first->shape.dims, sizeof *shape.dims * (LIMIT_RANK - 1));
  TRY(objects_create(&shape, &call->outputs[0]));
  for (uint32_t i = 0; i < call->input_count; i++) {
    TRY(objects_input(call, i, &part));
    if (part->count != first->count)
      return fail(INVALID_ARGUMENT, "Shapes of all inputs must match: %s and %s", shape_text(&first->shape), shape_text(&part->shape));
    for (int64_t k = 0; k < part->count; k++)
      objects_put(call->outputs[0], i * first->count + k, object_retain(objects_of(part)[k]));
  }
  return OK;
}

/* Unpack: element i of the first dimension is output i. */
status host_variant_unpack(struct host_call *call) {
  const struct tensor *from;
  TRY(objects_input(call, 0, &from));
  struct shape shape = {.rank = from->shape.rank - 1};
  memcpy(shape.dims, from->shape.dims + 1, sizeof *shape.dims * (size_t)shape.rank);
  for (uint32_t i = 0; i < call->output_count; i++)
    TRY(objects_share(from, i * shape_count(&shape), &shape, &call->outputs[i]));
  return OK;
}

/* Variants of the inputs in order, by the numbers that the last one has; -1: an empty one. */
static status variant_numbered(const struct host_call *call, int64_t number, struct object **out) {
  const struct tensor *from;
  *out = NULL;
  for (uint32_t i = 0; i + 1 < call->input_count && number >= 0; i++) {
    TRY(objects_input(call, i, &from));
    if (number < from->count)
      *out = object_retain(objects_of(from)[number]);
    number -= from->count;
  }
  return number >= 0 ? fail(INTERNAL, "a variant beyond the inputs' end") : OK;
}
status host_variant_take(struct host_call *call) {
  const struct tensor *numbers = &call->inputs[call->input_count - 1];
  TRY(objects_create(&numbers->shape, &call->outputs[0]));
  for (int64_t i = 0; i < numbers->count; i++) {
    struct object *object;
    TRY(variant_numbered(call, ((const int64_t *)numbers->data)[i], &object));
    objects_put(call->outputs[0], i, object);
  }
  return OK;
}
