/* host_accumulator.c: the ops on accumulators; a V1 handle (a string reference) is a scalar of dtype resource here too. */
#include "runtime/resource/accumulator.h"

#include <string.h>

static status make_accumulator(struct host_call *call, bool sparse) {
  struct accumulator_spec spec = { .sparse = sparse, .dtype = (enum dtype)host_attr_int(call, "dtype", DTYPE_FLOAT) };
  struct string_view reduction = host_attr_string(call, "reduction_type", "MEAN");
  spec.mean = string_is(reduction, "MEAN");
  if (!spec.mean && !string_is(reduction, "SUM"))
    return fail(INVALID_ARGUMENT, "reduction_type must be MEAN or SUM");
  TRY(host_read_shape(call, host_attr(call, "shape"), &spec.shape));
  spec.has_shape = spec.shape.rank >= 0;
  spec.shape.rank = spec.has_shape ? spec.shape.rank : 0;
  return host_give_resource(call, &accumulator_maker, &spec);
}

status host_accumulator(struct host_call *call) { return make_accumulator(call, false); }
status host_sparse_accumulator(struct host_call *call) { return make_accumulator(call, true); }

static status find_accumulator(const struct host_call *call, struct accumulator **out) {
  struct resource *resource;
  TRY(host_find_resource(call, 0, "accumulator", &resource));
  *out = (struct accumulator *)resource;
  return OK;
}

/* inputs: handle, local_step, gradient */
status host_accumulator_apply(struct host_call *call) {
  struct accumulator *accumulator;
  TRY(find_accumulator(call, &accumulator));
  return accumulator_apply(accumulator, host_scalar_int(&call->inputs[1]), &call->inputs[2]);
}

/* inputs: handle, local_step, indices, values, shape */
status host_accumulator_apply_sparse(struct host_call *call) {
  struct accumulator *accumulator;
  TRY(find_accumulator(call, &accumulator));
  const struct tensor *whole = host_attr_int(call, "has_known_shape", 1) ? &call->inputs[4] : NULL;
  return accumulator_apply_sparse(accumulator, host_scalar_int(&call->inputs[1]), &call->inputs[2], &call->inputs[3], whole);
}

/* inputs: handle, num_required */
status host_accumulator_take(struct host_call *call) {
  struct accumulator *accumulator;
  TRY(find_accumulator(call, &accumulator));
  return accumulator_take(accumulator, call, host_scalar_int(&call->inputs[1]));
}

status host_accumulator_set_step(struct host_call *call) {
  struct accumulator *accumulator;
  TRY(find_accumulator(call, &accumulator));
  accumulator_set_step(accumulator, host_scalar_int(&call->inputs[1]));
  return OK;
}

status host_accumulator_count(struct host_call *call) {
  struct accumulator *accumulator;
  TRY(find_accumulator(call, &accumulator));
  return host_give_number(call, 0, DTYPE_INT32, accumulator_count(accumulator));
}
