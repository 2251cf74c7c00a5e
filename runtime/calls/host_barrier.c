/* host_barrier.c: the ops on barriers. */
#include "runtime/resource/barrier.h"

static status read_spec(const struct host_call *call, struct barrier_spec *spec) {
  const struct program_attr *types = host_attr(call, "component_types"), *shapes = host_attr(call, "shapes");
  uint32_t count = types ? types->list.count : 0;
  if (count + 2 > QUEUE_COMPONENTS_MAX)
    return fail(UNIMPLEMENTED, "a barrier of %u components (at most %d)", count, QUEUE_COMPONENTS_MAX - 2);
  if (!shapes || shapes->list.count != count)
    return fail(INVALID_ARGUMENT, "All of the component shapes must be specified");
  spec->component_count = count;
  for (uint32_t i = 0; i < count; i++) {
    struct queue_component *component = &spec->components[i];
    component->dtype = (enum dtype)program_attr(call->program, types->list.first + i)->i;
    component->has_shape = true; /* all of it: checked while compiling */
    TRY(host_read_shape(call, program_attr(call->program, shapes->list.first + i), &component->shape));
  }
  return OK;
}

status host_barrier(struct host_call *call) {
  struct barrier_spec spec = {0};
  struct resource *barrier;
  bool is_new;
  TRY(read_spec(call, &spec));
  TRY(host_get_resource(call, &barrier_maker, &spec, &is_new, &barrier));
  if (!is_new)
    TRY(barrier_match((struct barrier *)barrier, &spec));
  return host_make_handle(call, barrier);
}

static status find_barrier(const struct host_call *call, struct barrier **out) {
  struct resource *resource;
  TRY(host_find_resource(call, 0, "barrier", &resource));
  *out = (struct barrier *)resource;
  return OK;
}

status host_barrier_insert(struct host_call *call) {
  struct barrier *barrier;
  TRY(find_barrier(call, &barrier));
  return barrier_insert(barrier, call, (uint32_t)host_attr_int(call, "component_index", 0), &call->inputs[1], &call->inputs[2]);
}

status host_barrier_take(struct host_call *call) {
  struct barrier *barrier;
  TRY(find_barrier(call, &barrier));
  return barrier_take(barrier, call, host_scalar_int(&call->inputs[1]), host_attr_int(call, "allow_small_batch", 0) != 0);
}

status host_barrier_close(struct host_call *call) {
  struct barrier *barrier;
  TRY(find_barrier(call, &barrier));
  return barrier_close(barrier, call, host_attr_int(call, "cancel_pending_enqueues", 0) != 0);
}

static status give_size(struct host_call *call, bool incomplete) {
  struct barrier *barrier;
  TRY(find_barrier(call, &barrier));
  return host_give_number(call, 0, DTYPE_INT32, barrier_size(barrier, incomplete));
}
status host_barrier_ready_size(struct host_call *call) { return give_size(call, false); }
status host_barrier_incomplete_size(struct host_call *call) { return give_size(call, true); }
