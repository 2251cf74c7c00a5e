/* host_destroy.c: DestroyResourceOp. What is destroyed is not found any more; other steps may still be using it, so that its
 * memory stays as long as the task, but for a variable's. */
#include <string.h>

#include "runtime/memory/container.h"
#include "runtime/memory/variable.h"
#include "runtime/step/task_state.h"

static status not_found(const struct host_call *call, const char *space, const char *name) {
  return host_attr_int(call, "ignore_lookup_error", 1) ? OK : fail(NOT_FOUND, "Resource %s/%s does not exist.", space, name);
}

status host_destroy_resource(struct host_call *call) {
  struct resource *resource;
  status result = host_find_resource(call, 0, NULL, &resource);
  if (result == NOT_FOUND && host_attr_int(call, "ignore_lookup_error", 1))
    return OK;
  TRY(result);
  resource->is_destroyed = true;
  return OK;
}

/* A variable has no handle here: attributes name it. */
status host_destroy_variable(struct host_call *call) {
  struct string_view space = host_attr_string(call, "variable_container", ""), name = host_attr_string(call, "variable", "");
  for (uint32_t i = 0; i < call->task->variable_count; i++) {
    struct variable *v = &call->task->variables[i];
    if (string_is(space, v->container) && string_is(name, v->name))
      return variable_forget(v) ? OK : not_found(call, v->container, v->name);
  }
  return fail(INTERNAL, "no such variable");
}
