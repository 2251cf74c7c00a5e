/* host_accumulator.c: the ops on accumulators; a V1 handle (a string reference) is a scalar of dtype resource here too. */
#include "runtime/resource/accumulator.h"

#include <string.h>

static status make_accumulator(struct host_call *call, bool sparse) {
  struct accumulator_spec spec = {.sparse = sparse, .dtype = (enum dtype)host_attr_int(call, "dtype", DTYPE_FLOAT)};
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
  return accumulator_apply(accumulator, call->driver, host_scalar_int(&call->inputs[1]), &call->inputs[2]);
}

/* inputs: handle, local_step, indices, values, shape */
status host_accumulator_apply_sparse(struct host_call *call) {
  struct accumulator *accumulator;
  TRY(find_accumulator(call, &accumulator));
  const struct tensor *whole = host_attr_int(call, "has_known_shape", 1) ? &call->inputs[4] : NULL;
  return accumulator_apply_sparse(accumulator, call->driver, host_scalar_int(&call->inputs[1]), &call->inputs[2], &call->inputs[3], whole);
}

static int64_t count_replicas(const struct program *program) {
  int64_t count = 0;
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count; i++)
    count += strcmp(program_text(program, program_task(program, i)->job), program_text(program, program->replicated_job)) == 0;
  return count;
}

/* inputs: handle, num_required */
status host_accumulator_take(struct host_call *call) {
  struct accumulator *accumulator;
  TRY(find_accumulator(call, &accumulator));
  struct accumulator_round round = {.each = host_attr_int(call, "tfc_gradients_each", 0)};
  round.replicas = round.each ? count_replicas(call->program) : 0;
  return accumulator_take(accumulator, call, host_scalar_int(&call->inputs[1]), round);
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
