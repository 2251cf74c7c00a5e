/* ops_destroy.c: DestroyResourceOp: a variable loses its value, any other resource is not found any more. */
#include <string.h>

#include "ir/lower/host_call.h"

static void add_text(struct op_call *c, struct flow_node *n, const char *name, const char *text) {
  struct attr_value value = {.kind = ATTR_STRING};
  value.s.data = text;
  value.s.size = strlen(text);
  op_host_add_attr(c, n, name, value);
}

status build_destroy_resource(struct op_call *c) {
  struct flow_node *n;
  uint32_t var;
  if (!c->in[0].var)
    return op_host(c, HOST_CHANGES, NULL, &n);
  TRY(op_input_var(c, 0, &var));
  n = op_emit(c, FLOW_HOST, true);
  n->host = "destroy_variable";
  n->task = op_var(c, var)->task;
  op_host_attrs(c, n);
  add_text(c, n, "variable", op_var(c, var)->name);
  add_text(c, n, "variable_container", op_var(c, var)->container);
  return OK;
}
