/* ops_temporary.c: temporary variables: variables whose name is taken from when a step makes them until it destroys them. The step keeps
 * the names that are taken in a list, one for each task. In a loop every turn has names of its own, so that nothing is kept there. */
#include <string.h>

#include "ir/lower/lower_frame.h"
#include "ir/lower/host_call.h"

/* The list of names on the node's task: made by the first who asks. */
static value_id name_list(struct op_call *c) {
  value_id *list = op_temporaries(c);
  if (*list)
    return *list;
  struct op_call first = {.lw = c->lw, .node = c->node};
  struct flow_node *n = op_emit(&first, FLOW_HOST, false);
  n->host = "temporaries";
  return *list = op_add_output(&first, n, DTYPE_RESOURCE, 0, NULL);
}

static const char *temporary_name(const struct node *node) {
  const char *name = node_attr_string(node, "var_name", "");
  return *name ? name : node->name;
}

static bool is_source(const struct frame *fr, uint32_t id, const char *name) {
  const struct node *n = &fr->graph->nodes.items[id];
  return fr->needed[id] && strcmp(n->op, "TemporaryVariable") == 0 && n->control_count == 0 && strcmp(temporary_name(n), name) == 0;
}

/* How many of that name are made before anything else runs. */
static int64_t count_makers(struct op_call *c) {
  const struct frame *fr = op_frame(c);
  int64_t count = 0;
  for (uint32_t id = 0; c->node->control_count == 0 && id < fr->graph->nodes.count; id++)
    count += is_source(fr, id, temporary_name(c->node));
  return count ? count : 1;
}

static void call_with_name(struct op_call *c, const char *host, int64_t makers) {
  value_id list = name_list(c);
  struct flow_node *n = op_emit(c, FLOW_HOST, true);
  n->host = host;
  vec_push(&n->inputs, list);
  struct attr_value name = {.kind = ATTR_STRING}, count = {.kind = ATTR_INT, .i = makers};
  name.s.data = temporary_name(c->node);
  name.s.size = strlen(temporary_name(c->node));
  op_host_add_attr(c, n, "var_name", name);
  op_host_add_attr(c, n, "makers", count);
}

status build_variable(struct op_call *c); /* of ops.def, as these */
status build_read_variable(struct op_call *c);

status build_temporary_variable(struct op_call *c) {
  TRY(build_variable(c));
  if (!op_in_region(c))
    call_with_name(c, "make_temporary", count_makers(c));
  c->out[0].after = c->effect;
  return OK;
}

status build_destroy_temporary(struct op_call *c) {
  TRY(build_read_variable(c));
  if (!op_in_region(c))
    call_with_name(c, "destroy_temporary", 1);
  return OK;
}
