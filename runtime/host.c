/* host.c: calling host functions from a step, and what they use to read their call. */
#include "runtime/host.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/container.h"
#include "runtime/object.h"
#include "runtime/size.h"
#include "runtime/task_state.h"

#define HOST(name, function) status function(struct host_call *call);
#define PART(name, function) __attribute__((weak)) status function(struct host_call *call);
#define USES(name, part)
#include "runtime/host.def"
#undef HOST
#undef PART

static const struct {
  const char *name;
  host_function function;
} rows[] = {
#define HOST(name, function) { #name, function },
#define PART(name, function) { #name, function },
#include "runtime/host.def"
#undef HOST
#undef PART
#undef USES
};

host_function host_find(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0)
      return rows[i].function;
  return NULL;
}

/* ---- the step's side ---- */

void host_call_init(struct frame *frame, const struct program_instr *instr, struct host_call *call) {
  memset(call, 0, sizeof *call);
  call->inbox = &frame->inbox;
  call->task = frame->part->task;
  call->program = frame->program;
  call->instr = instr;
  call->step = frame->step;
  call->inputs = frame->views;
  call->held = frame->views_held;
  call->outputs = frame->outputs;
  call->input_count = instr->args.count;
  call->output_count = instr->outputs.count;
  call->driver = frame->step->driver;
}

status host_call_start(struct frame *frame, struct host_call *call) {
  const uint32_t *args = program_operands(frame->program, call->instr->args.first);
  for (uint32_t i = 0; i < call->input_count; i++) {
    struct tensor *view = &frame->views[i];
    memset(view, 0, sizeof *view);
    view->dtype = (enum dtype)frame->slots[args[i]].dtype;
    TRY(frame_shape(frame, args[i], &view->shape));
    view->count = shape_count(&view->shape);
    view->data = frame->data[args[i]];
    uint32_t root = frame->slots[args[i]].root;
    struct tensor *held = frame->slots[root].storage == STORAGE_TENSOR && view->dtype != DTYPE_STRING ? frame->held[root] : NULL;
    frame->views_held[i] = root == args[i] ? held : NULL;
    if (held && view->dtype == DTYPE_VARIANT)
      view->release_data = held->release_data; /* says what its elements are (object.h), in another shape, too */
  }
  for (uint32_t i = 0; i < call->output_count; i++)
    call->outputs[i] = NULL;
  status result = frame->part->task->hosts[call->instr - program_instr(frame->program, 0)](call);
  if (result != OK)
    for (uint32_t i = 0; i < call->output_count; i++) {
      tensor_release(call->outputs[i]);
      call->outputs[i] = NULL;
    }
  return result;
}

status host_call_end(struct frame *frame, struct host_call *call) {
  const uint32_t *outputs = program_operands(frame->program, call->instr->outputs.first);
  for (uint32_t i = 0; i < call->output_count; i++)
    if (call->outputs[i])
      frame_set(frame, outputs[i], call->outputs[i]);
  for (uint32_t i = 0; i < call->output_count; i++) {
    const struct program_slot *slot = &frame->slots[outputs[i]];
    const struct tensor *tensor = call->outputs[i];
    if (!tensor || tensor->dtype != slot->dtype)
      return fail(INTERNAL, "output %u is %s, expected is %s", i, tensor ? dtype_name(tensor->dtype) : "missing",
                  dtype_name((enum dtype)slot->dtype));
    TRY(frame_bind(frame, outputs[i], &tensor->shape));
  }
  return OK;
}

void host_finish(struct host_call *call, status code, const char *text) {
  call->code = code;
  snprintf(call->text, sizeof call->text, "%s", text ? text : "");
  if (call->finished)
    call->finished(call);
  else
    inbox_put(call->inbox, &call->item);
}

/* ---- the function's side ---- */

status host_keep_input(const struct host_call *call, uint32_t i, struct tensor **out) {
  if (call->held[i]) {
    *out = tensor_retain(call->held[i]);
    return OK;
  }
  if (tensor_has_objects(&call->inputs[i]))
    return objects_share(&call->inputs[i], 0, &call->inputs[i].shape, out);
  return tensor_copy_in(call->inputs[i].dtype, &call->inputs[i].shape, call->inputs[i].data, out);
}

bool host_owns_input(const struct host_call *call, uint32_t i) {
  const uint32_t *args = program_operands(call->program, call->instr->args.first);
  const uint32_t *release = program_operands(call->program, call->instr->release.first);
  if (!call->held[i] || atomic_load(&call->held[i]->references) != 1)
    return false;
  for (uint32_t j = 0; j < call->input_count; j++)
    if (j != i && call->inputs[j].data == call->inputs[i].data)
      return false; /* the same value again */
  for (uint32_t k = 0; k < call->instr->release.count; k++)
    if (release[k] == args[i])
      return true;
  return false;
}

status host_make_output(struct host_call *call, uint32_t i, enum dtype dtype, const struct shape *shape) {
  return tensor_create(dtype, shape, &call->outputs[i]);
}

status host_give_number(struct host_call *call, uint32_t i, enum dtype dtype, int64_t value) {
  TRY(host_make_output(call, i, dtype, &(struct shape){ 0 }));
  void *data = call->outputs[i]->data;
  switch (dtype) {
  case DTYPE_BOOL: *(bool *)data = value != 0; break;
  case DTYPE_INT32: *(int32_t *)data = (int32_t)value; break;
  default: *(int64_t *)data = value; break;
  }
  return OK;
}

static void copy_text(struct string_view from, char *to, size_t size) {
  snprintf(to, size, "%.*s", (int)(from.size < size ? from.size : size - 1), from.data);
}

status host_get_resource(struct host_call *call, const struct resource_maker *maker, void *argument, bool *is_new,
                         struct resource **out) {
  char space[256], name[512];
  copy_text(host_attr_string(call, "container", ""), space, sizeof space);
  copy_text(host_attr_string(call, "shared_name", ""), name, sizeof name);
  if (name[0] == '_')
    return fail(INVALID_ARGUMENT, "shared_name cannot start with '_'");
  if (!name[0])
    snprintf(name, sizeof name, "_0_%s", host_node_name(call));
  return container_get(call->task->container, space[0] ? space : "localhost", name, maker, argument, is_new, out);
}

status host_make_handle(struct host_call *call, const struct resource *resource) {
  TRY(host_make_output(call, 0, DTYPE_RESOURCE, &(struct shape){ 0 }));
  *(int64_t *)call->outputs[0]->data = resource->handle;
  return OK;
}

status host_give_resource(struct host_call *call, const struct resource_maker *maker, void *argument) {
  struct resource *resource;
  bool is_new;
  TRY(host_get_resource(call, maker, argument, &is_new, &resource));
  return host_make_handle(call, resource);
}

static void release_anonymous(struct tensor *handle) {
  free(handle->data);
  resource_release(handle->owner);
}

status host_make_anonymous(struct host_call *call, const struct resource_maker *maker, void *argument, struct resource **out) {
  TRY(resource_create(maker, argument, host_node_name(call), out));
  status result = host_make_output(call, 0, DTYPE_RESOURCE, &(struct shape){ 0 });
  if (result != OK) {
    resource_release(*out);
    return result;
  }
  struct tensor *handle = call->outputs[0];
  memset(handle->data, 0, dtype_size(DTYPE_RESOURCE));
  handle->owner = *out;
  handle->release_data = release_anonymous;
  return OK;
}

status host_find_resource(const struct host_call *call, uint32_t i, const char *kind, struct resource **out) {
  const struct tensor *held = i < call->input_count ? call->held[i] : NULL;
  if (held && held->release_data == release_anonymous) {
    *out = held->owner;
    if ((*out)->is_destroyed)
      return fail(NOT_FOUND, "Resource %s does not exist.", (*out)->name);
    return !kind || strcmp((*out)->kind, kind) == 0 ? OK : fail(INVALID_ARGUMENT, "'%s' is a %s, not a %s", (*out)->name, (*out)->kind, kind);
  }
  if (call->input_count <= i || call->inputs[i].dtype != DTYPE_RESOURCE || call->inputs[i].count != 1)
    return fail(INVALID_ARGUMENT, "input %u is no handle of a %s", i, kind ? kind : "resource");
  return container_find(call->task->container, *(const int64_t *)call->inputs[i].data, kind, out);
}

const struct program_attr *host_attr(const struct host_call *call, const char *name) {
  for (uint32_t i = 0; i < call->instr->attrs.count; i++) {
    const struct program_attr *attr = program_attr(call->program, call->instr->attrs.first + i);
    if (strcmp(program_text(call->program, attr->name), name) == 0)
      return attr;
  }
  return NULL;
}

int64_t host_attr_int(const struct host_call *call, const char *name, int64_t otherwise) {
  const struct program_attr *attr = host_attr(call, name);
  return attr ? attr->i : otherwise;
}

double host_attr_float(const struct host_call *call, const char *name, double otherwise) {
  const struct program_attr *attr = host_attr(call, name);
  return attr ? attr->f : otherwise;
}

struct string_view host_attr_string(const struct host_call *call, const char *name, const char *otherwise) {
  const struct program_attr *attr = host_attr(call, name);
  if (!attr)
    return (struct string_view){ otherwise, strlen(otherwise) };
  return (struct string_view){ (const char *)program_table(call->program, PROGRAM_DATA) + attr->offset, attr->size };
}

const char *host_node_name(const struct host_call *call) { return program_text(call->program, call->instr->node); }

status host_read_shape(const struct host_call *call, const struct program_attr *attr, struct shape *out) {
  *out = (struct shape){ .rank = -1 };
  if (!attr || attr->i < 0)
    return OK;
  if (attr->i > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a shape of rank %lld", (long long)attr->i);
  out->rank = (int)attr->i;
  for (int d = 0; d < out->rank; d++)
    out->dims[d] = *program_words(call->program, attr->list.first + (uint32_t)d);
  return OK;
}

int64_t host_scalar_int(const struct tensor *tensor) {
  if (tensor->count < 1)
    return 0;
  return tensor->dtype == DTYPE_INT64 ? *(const int64_t *)tensor->data : *(const int32_t *)tensor->data;
}

struct string_view host_scalar_string(const struct tensor *tensor) {
  if (tensor->count < 1 || tensor->dtype != DTYPE_STRING)
    return (struct string_view){ "", 0 };
  return *(const struct string_view *)tensor->data;
}
