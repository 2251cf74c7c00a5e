/* function.c: instances of library functions. Nodes are made first, then their inputs are resolved: bodies may be in any
 * order, and loops in them refer backwards. */
#include "ir/function.h"

#include <stdlib.h>
#include <string.h>

#include "ir/registry.h"

struct instantiation {
  const struct function *function;
  const struct function_body *body;
  const struct attr *attrs; /* the caller's */
  uint32_t attr_count;
  const char *prefix;
  struct arena *arena;
  struct graph *graph;
  struct map locals;        /* names inside of the body -> node of the instance */
};

const struct function *function_find(const struct graph *graph, const char *name) {
  uint32_t at;
  return map_find(&graph->function_names, name, &at) ? &graph->functions.items[at] : NULL;
}

/* ---- attributes ---- */

static const struct attr_value *given_attr(const struct instantiation *x, const char *name) {
  const struct attr_value *v = attr_find(x->attrs, x->attr_count, name);
  return v ? v : attr_find(x->body->defaults, x->body->default_count, name);
}

static bool has_placeholder(const struct attr_value *v) {
  if (v->kind == ATTR_LIST)
    for (uint32_t i = 0; i < v->list.count; i++)
      if (has_placeholder(&v->list.items[i]))
        return true;
  if (v->kind == ATTR_FUNC)
    for (uint32_t i = 0; i < v->func->attr_count; i++)
      if (has_placeholder(&v->func->attrs[i].value))
        return true;
  return v->kind == ATTR_PLACEHOLDER;
}

static status substitute_attrs(const struct instantiation *x, const struct attr *attrs, uint32_t count,
                               const struct attr **out);

/* The value with the caller's attributes in the place of placeholders; depth is bounded by the reader. */
static status substitute(const struct instantiation *x, const struct attr_value *v, struct attr_value *out) {
  *out = *v;
  if (v->kind == ATTR_PLACEHOLDER) {
    const struct attr_value *given = given_attr(x, v->s.data);
    if (!given || given->kind == ATTR_PLACEHOLDER)
      return fail(INVALID_ARGUMENT, "the caller gives no attribute '%s'", v->s.data);
    *out = *given;
  } else if (v->kind == ATTR_FUNC && has_placeholder(v)) {
    struct attr_func *func = ARENA_NEW(x->arena, struct attr_func);
    *func = *v->func;
    TRY(substitute_attrs(x, v->func->attrs, v->func->attr_count, &func->attrs));
    out->func = func;
  } else if (v->kind == ATTR_LIST && has_placeholder(v)) {
    struct attr_value *items = ARENA_ARRAY(x->arena, struct attr_value, v->list.count);
    for (uint32_t i = 0; i < v->list.count; i++)
      TRY(substitute(x, &v->list.items[i], &items[i]));
    out->list.items = items;
  }
  return OK;
}

static status substitute_attrs(const struct instantiation *x, const struct attr *attrs, uint32_t count,
                               const struct attr **out) {
  bool any = false;
  for (uint32_t i = 0; i < count && !any; i++)
    any = has_placeholder(&attrs[i].value);
  *out = attrs;
  if (!any)
    return OK;
  struct attr *copy = ARENA_ARRAY(x->arena, struct attr, count);
  for (uint32_t i = 0; i < count; i++) {
    copy[i].name = attrs[i].name;
    TRY(substitute(x, &attrs[i].value, &copy[i].value));
  }
  *out = copy;
  return OK;
}

/* ---- nodes ---- */

static status add_node(struct instantiation *x, const char *local, struct node node) {
  node.name = arena_printf(x->arena, "%s/%s", x->prefix, local);
  node.op = node.op ? node.op : "";
  if (!map_insert(&x->locals, local, x->graph->nodes.count) ||
      !map_insert(&x->graph->names, node.name, x->graph->nodes.count))
    return fail(INVALID_ARGUMENT, "two nodes or arguments are named '%s'", local);
  vec_push(&x->graph->nodes, node);
  return OK;
}

static status add_arg(struct instantiation *x, uint32_t index) {
  const struct function *f = x->function;
  int64_t dtype = f->arg_types[index];
  if (!dtype) {
    const struct attr_value *given = given_attr(x, f->arg_type_attrs[index]);
    dtype = given && given->kind == ATTR_TYPE ? given->i : 0;
  }
  if (!dtype_is_valid(dtype_base((int)dtype)))
    return fail(INVALID_ARGUMENT, "argument '%s' has no dtype", f->arg_names[index]);
  struct attr *attrs = ARENA_ARRAY(x->arena, struct attr, 2);
  attrs[0] = (struct attr){.name = "T", .value = {.kind = ATTR_TYPE, .i = dtype}};
  attrs[1] = (struct attr){.name = "index", .value = {.kind = ATTR_INT, .i = index}};
  return add_node(x, f->arg_names[index], (struct node){.op = "_Arg", .device = "", .attrs = attrs, .attr_count = 2});
}

static status add_body_node(struct instantiation *x, const struct function_node *n) {
  struct node node = {.op = n->op, .device = n->device, .attr_count = n->attr_count, .def = registry_find(n->op)};
  status s = substitute_attrs(x, n->attrs, n->attr_count, &node.attrs);
  if (s != OK)
    return status_prefix(s, "%s/%s (%s): ", x->prefix, n->name, n->op);
  return add_node(x, n->name, node);
}

/* ---- edges ---- */

static int64_t arg_size(const struct node *n, const struct op_arg *arg) {
  if (arg->list_attr) {
    const struct attr_value *v = node_attr(n, arg->list_attr);
    return v && v->kind == ATTR_LIST ? v->list.count : 0;
  }
  return arg->number_attr ? node_attr_int(n, arg->number_attr, 0) : 1;
}

/* The first port of the output argument `name`; -1 when the op has none such. */
static int64_t output_offset(const struct instantiation *x, const struct node *n, const char *name) {
  int64_t offset = 0;
  if (n->def) {
    for (uint32_t i = 0; i < n->def->output_count; offset += arg_size(n, &n->def->outputs[i]), i++)
      if (!strcmp(n->def->outputs[i].name, name))
        return offset;
    return -1;
  }
  const struct function *callee = function_find(x->graph, n->op);
  for (uint32_t i = 0; callee && i < callee->ret_count; i++)
    if (!strcmp(callee->ret_names[i], name))
      return i;
  return -1;
}

static bool port_parse(const char *text, uint32_t *out) {
  char *end;
  if (*text < '0' || *text > '9')
    return false;
  unsigned long long value = strtoull(text, &end, 10);
  *out = (uint32_t)value;
  return !*end && value < LIMIT_NODE_INPUTS;
}

/* "arg", "arg:0", "node:out_arg", "node:out_arg:1" */
static status resolve(const struct instantiation *x, const char *text, struct edge *out) {
  size_t length = strcspn(text, ":");
  char *local = arena_strndup(x->arena, text, length);
  if (!map_find(&x->locals, local, &out->node))
    return fail(INVALID_ARGUMENT, "input '%s' is no node or argument of the function", text);
  const char *rest = text[length] ? text + length + 1 : "";
  out->port = 0;
  if (!*rest || port_parse(rest, &out->port))
    return OK;
  size_t arg_length = strcspn(rest, ":");
  char *arg = arena_strndup(x->arena, rest, arg_length);
  const struct node *n = &x->graph->nodes.items[out->node];
  int64_t offset = output_offset(x, n, arg);
  if (offset < 0)
    return fail(INVALID_ARGUMENT, "input '%s': '%s' (%s) has no output '%s'", text, n->name, n->op, arg);
  if (rest[arg_length] && !port_parse(rest + arg_length + 1, &out->port))
    return fail(INVALID_ARGUMENT, "input '%s' has no number of an output at its end", text);
  if (offset > LIMIT_NODE_INPUTS)
    return fail(INVALID_ARGUMENT, "input '%s' is output %lld of its node", text, (long long)offset);
  out->port += (uint32_t)offset;
  return OK;
}

static status resolve_inputs(struct instantiation *x, const struct function_node *n, struct node *node) {
  struct edge *inputs = ARENA_ARRAY(x->arena, struct edge, n->input_count + 1);
  uint32_t *controls = ARENA_ARRAY(x->arena, uint32_t, n->input_count + 1);
  for (uint32_t i = 0; i < n->input_count; i++) {
    struct edge e;
    bool control = n->inputs[i][0] == '^';
    status s = resolve(x, n->inputs[i] + control, &e);
    if (s != OK)
      return status_prefix(s, "%s (%s): ", node->name, node->op);
    if (control)
      controls[node->control_count++] = e.node;
    else
      inputs[node->input_count++] = e;
  }
  node->inputs = inputs;
  node->controls = controls;
  return OK;
}

static status resolve_results(struct instantiation *x, struct instance *out) {
  struct edge *rets = ARENA_ARRAY(x->arena, struct edge, x->function->ret_count + 1);
  uint32_t *controls = ARENA_ARRAY(x->arena, uint32_t, x->body->control_count + 1);
  for (uint32_t i = 0; i < x->function->ret_count; i++) {
    TRY(resolve(x, x->body->ret_sources[i], &rets[i]));
    const struct node *n = &x->graph->nodes.items[rets[i].node];
    if (rets[i].port >= n->output_count)
      return fail(INVALID_ARGUMENT, "its result '%s' is output %u of '%s' (%s), which has %u", x->function->ret_names[i],
                  rets[i].port, n->name, n->op, n->output_count);
  }
  for (uint32_t i = 0; i < x->body->control_count; i++) {
    struct edge e;
    TRY(resolve(x, x->body->control_sources[i], &e));
    controls[i] = e.node;
  }
  out->rets = rets;
  out->ret_count = x->function->ret_count;
  out->controls = controls;
  out->control_count = x->body->control_count;
  return OK;
}

static status fill(struct instantiation *x, struct instance *out) {
  for (uint32_t i = 0; i < x->function->arg_count; i++)
    TRY(add_arg(x, i));
  for (uint32_t i = 0; i < x->body->node_count; i++)
    TRY(add_body_node(x, &x->body->nodes[i]));
  for (uint32_t i = 0; i < x->body->node_count; i++)
    TRY(resolve_inputs(x, &x->body->nodes[i], &x->graph->nodes.items[x->function->arg_count + i]));
  TRY(registry_check(x->graph));
  return resolve_results(x, out);
}

status function_instantiate(const struct graph *library, const struct function *function, const struct attr *attrs,
                            uint32_t attr_count, const char *prefix, struct arena *arena, struct instance *out) {
  struct graph *graph = ARENA_NEW(arena, struct graph);
  graph->arena = arena;
  graph->functions = library->functions;
  graph->function_names = library->function_names;
  graph->producer = library->producer;
  struct instantiation x = {.function = function, .body = function->body, .attrs = attrs, .attr_count = attr_count,
                            .prefix = prefix, .arena = arena, .graph = graph};
  struct instance made = {.graph = graph, .arg_count = function->arg_count};
  status s = fill(&x, &made);
  map_deinit(&x.locals);
  if (s != OK) {
    instance_deinit(&made);
    return status_prefix(s, "function '%s': ", function->name);
  }
  *out = made;
  return OK;
}

void instance_deinit(struct instance *instance) {
  map_deinit(&instance->graph->names); /* the library is the caller's */
  vec_free(&instance->graph->nodes);
}
