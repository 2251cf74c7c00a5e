/* host_queue.c: the queue ops. Inputs and attributes are those of TensorFlow's ops; a handle is a scalar of dtype resource
 * with the number that the container gave the queue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/resource/queue.h"
#include "runtime/step/task_state.h"
#include "runtime/value/tensor_list.h"

/* ---- making ---- */

static status read_shape(const struct host_call *call, const struct program_attr *attr, struct queue_component *out) {
  TRY(host_read_shape(call, attr, &out->shape));
  out->has_shape = out->shape.rank >= 0;
  out->shape.rank = out->has_shape ? out->shape.rank : 0;
  return OK;
}

static status check_component(const struct queue_spec *spec, const struct queue_component *component) {
  for (int i = 0; component->has_shape && i < component->shape.rank && spec->kind != QUEUE_PADDING; i++)
    if (component->shape.dims[i] < 0)
      return fail(INVALID_ARGUMENT, "%s: shapes of components must be fully defined", queue_kind_name(spec->kind));
  return OK;
}

static status read_components(const struct host_call *call, struct queue_spec *spec) {
  const struct program_attr *types = host_attr(call, "component_types"), *shapes = host_attr(call, "shapes");
  uint32_t first = 0;
  if (spec->kind == QUEUE_PRIORITY) {
    spec->components[0] = (struct queue_component){.dtype = DTYPE_INT64, .has_shape = true};
    first = 1;
  }
  uint32_t count = types ? types->list.count : 0;
  if (count + first > QUEUE_COMPONENTS_MAX)
    return fail(UNIMPLEMENTED, "a queue of %u components (at most %d)", count + first, QUEUE_COMPONENTS_MAX);
  uint32_t shape_count = shapes ? shapes->list.count : 0;
  if (shape_count && shape_count != count)
    return fail(INVALID_ARGUMENT, "%u component types and %u shapes", count, shape_count);
  spec->component_count = count + first;
  for (uint32_t i = 0; i < count; i++) {
    struct queue_component *component = &spec->components[i + first];
    component->dtype = (enum dtype)program_attr(call->program, types->list.first + i)->i;
    if (shape_count)
      TRY(read_shape(call, program_attr(call->program, shapes->list.first + i), component));
    TRY(check_component(spec, component));
  }
  return OK;
}

static status make_queue(struct host_call *call, enum queue_kind kind) {
  struct queue_spec spec = {.kind = kind};
  TRY(read_components(call, &spec));
  spec.capacity = host_attr_int(call, "capacity", -1);
  spec.capacity = spec.capacity < 0 ? INT64_MAX : spec.capacity;
  if (kind == QUEUE_SHUFFLE) {
    spec.min_after_dequeue = host_attr_int(call, "min_after_dequeue", 0);
    spec.seed = host_attr_int(call, "seed", 0);
    spec.seed2 = host_attr_int(call, "seed2", 0);
    if (spec.min_after_dequeue < 0 || spec.min_after_dequeue >= spec.capacity)
      return fail(INVALID_ARGUMENT, "min_after_dequeue %lld must be at least 0 and below capacity %lld", (long long)spec.min_after_dequeue,
                  (long long)spec.capacity);
  }
  struct resource *queue;
  bool is_new;
  TRY(host_get_resource(call, &queue_maker, &spec, &is_new, &queue));
  if (!is_new)
    TRY(queue_match((struct queue *)queue, &spec));
  return host_make_handle(call, queue);
}

status host_fifo_queue(struct host_call *call) { return make_queue(call, QUEUE_FIFO); }
status host_shuffle_queue(struct host_call *call) { return make_queue(call, QUEUE_SHUFFLE); }
status host_padding_queue(struct host_call *call) { return make_queue(call, QUEUE_PADDING); }
status host_priority_queue(struct host_call *call) { return make_queue(call, QUEUE_PRIORITY); }

/* ---- using ---- */

static status find_queue(const struct host_call *call, struct queue **out) {
  if (host_attr_int(call, "timeout_ms", -1) != -1)
    return fail(INVALID_ARGUMENT, "Timeout not supported yet.");
  struct resource *resource;
  TRY(host_find_resource(call, 0, "queue", &resource));
  *out = (struct queue *)resource;
  return OK;
}

/* Whether an element (the shape from dimension `from` on) is as the component says. */
static bool shape_fits(const struct queue_component *component, const struct shape *shape, int from) {
  if (!component->has_shape)
    return true;
  if (shape->rank - from != component->shape.rank)
    return false;
  for (int i = 0; i < component->shape.rank; i++)
    if (component->shape.dims[i] >= 0 && component->shape.dims[i] != shape->dims[i + from])
      return false;
  return true;
}

static status check_tuple(const struct host_call *call, const struct queue *queue, int from) {
  const struct queue_spec *spec = queue_get_spec(queue);
  if (call->input_count - 1 != spec->component_count)
    return fail(INVALID_ARGUMENT, "Wrong number of components in tuple. Expected %u, got %u", spec->component_count, call->input_count - 1);
  for (uint32_t i = 0; i < spec->component_count; i++) {
    const struct tensor *input = &call->inputs[i + 1];
    if (input->dtype != spec->components[i].dtype)
      return fail(INVALID_ARGUMENT, "Type mismatch in tuple component %u. Expected %s, got %s", i, dtype_name(spec->components[i].dtype),
                  dtype_name(input->dtype));
    if (input->shape.rank < from)
      return fail(INVALID_ARGUMENT, "Shape mismatch in tuple component %u. Elements of a batch are expected, got a scalar", i);
    if (!shape_fits(&spec->components[i], &input->shape, from))
      return fail(INVALID_ARGUMENT, "Shape mismatch in tuple component %u. Expected %s%s, got %s", i, from ? "rows of " : "",
                  shape_text(&spec->components[i].shape), shape_text(&input->shape));
    if (from && input->shape.dims[0] != call->inputs[1].shape.dims[0])
      return fail(INVALID_ARGUMENT,
                  "All input tensors must have the same size in the 0th dimension. Component %u has %lld, "
                  "and should have %lld",
                  i, (long long)input->shape.dims[0], (long long)call->inputs[1].shape.dims[0]);
  }
  return OK;
}

status host_queue_enqueue(struct host_call *call) {
  struct queue *queue;
  TRY(find_queue(call, &queue));
  TRY(check_tuple(call, queue, 0));
  struct tensor *tuple[QUEUE_COMPONENTS_MAX];
  for (uint32_t i = 0; i + 1 < call->input_count; i++) {
    status result = host_keep_input(call, i + 1, &tuple[i]);
    if (result == OK)
      continue;
    while (i-- > 0)
      tensor_release(tuple[i]);
    return result;
  }
  return queue_enqueue(queue, call, tuple, 1);
}

status host_queue_enqueue_many(struct host_call *call) {
  struct queue *queue;
  TRY(find_queue(call, &queue));
  TRY(check_tuple(call, queue, 1));
  uint32_t components = call->input_count - 1;
  int64_t rows = components ? call->inputs[1].shape.dims[0] : 0;
  struct tensor **tuples = calloc((size_t)rows * components + 1, sizeof *tuples);
  if (!tuples)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld elements", (long long)rows);
  status result = OK;
  for (int64_t i = 0; i < rows * components && result == OK; i++)
    result = tensor_row(&call->inputs[1 + i % components], i / components, &tuples[i]);
  if (result == OK)
    result = queue_enqueue(queue, call, tuples, rows);
  else
    for (int64_t i = 0; i < rows * components; i++)
      tensor_release(tuples[i]);
  free(tuples);
  return result;
}

status host_queue_dequeue(struct host_call *call) {
  struct queue *queue;
  TRY(find_queue(call, &queue));
  int64_t each = host_attr_int(call, "tfc_tokens_each", 0);
  return each ? queue_dequeue_token(queue, call, each) : queue_dequeue(queue, call);
}

static status dequeue_many(struct host_call *call, bool up_to) {
  struct queue *queue;
  TRY(find_queue(call, &queue));
  return queue_dequeue_many(queue, call, host_scalar_int(&call->inputs[1]), up_to);
}
status host_queue_dequeue_many(struct host_call *call) { return dequeue_many(call, false); }
status host_queue_dequeue_up_to(struct host_call *call) { return dequeue_many(call, true); }

status host_queue_close(struct host_call *call) {
  struct queue *queue;
  TRY(find_queue(call, &queue));
  return queue_close(queue, call, host_attr_int(call, "cancel_pending_enqueues", 0) != 0);
}

status host_queue_size(struct host_call *call) {
  struct queue *queue;
  TRY(find_queue(call, &queue));
  return host_give_number(call, 0, DTYPE_INT32, queue_size(queue));
}

status host_queue_is_closed(struct host_call *call) {
  struct queue *queue;
  TRY(find_queue(call, &queue));
  return host_give_number(call, 0, DTYPE_BOOL, queue_is_closed(queue));
}
