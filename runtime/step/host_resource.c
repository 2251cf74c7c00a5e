/* host_resource.c: the resources that host functions find and make, in the container of their task. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/host/host.h"
#include "runtime/memory/container.h"
#include "runtime/step/task_state.h"

static void copy_text(struct string_view from, char *to, size_t size) {
  snprintf(to, size, "%.*s", (int)(from.size < size ? from.size : size - 1), from.data);
}

status host_get_resource(struct host_call *call, const struct resource_maker *maker, void *argument, bool *is_new, struct resource **out) {
  char space[256], name[512];
  copy_text(host_attr_string(call, "container", ""), space, sizeof space);
  copy_text(host_attr_string(call, "shared_name", ""), name, sizeof name);
  if (name[0] == '_')
    return fail(INVALID_ARGUMENT, "shared_name cannot start with '_'");
  if (!name[0])
    snprintf(name, sizeof name, RESOURCE_PRIVATE "%s", host_node_name(call));
  return container_get(call->task->container, space[0] ? space : "localhost", name, maker, argument, is_new, out);
}

status host_make_handle(struct host_call *call, const struct resource *resource) {
  TRY(host_make_output(call, 0, DTYPE_RESOURCE, &(struct shape){0}));
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
  status result = host_make_output(call, 0, DTYPE_RESOURCE, &(struct shape){0});
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
    return !kind || strcmp((*out)->kind, kind) == 0 ? OK
                                                    : fail(INVALID_ARGUMENT, "'%s' is a %s, not a %s", (*out)->name, (*out)->kind, kind);
  }
  if (call->input_count <= i || call->inputs[i].dtype != DTYPE_RESOURCE || call->inputs[i].count != 1)
    return fail(INVALID_ARGUMENT, "input %u is no handle of a %s", i, kind ? kind : "resource");
  return container_find(call->task->container, *(const int64_t *)call->inputs[i].data, kind, out);
}
