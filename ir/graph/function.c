/* function.c: instances of library functions. Nodes are made first, then their inputs are resolved: bodies may be in any
 * order, and loops in them refer backwards. */
#include "ir/graph/function.h"

#include <stdlib.h>
#include <string.h>

#include "ir/graph/registry.h"

typedef VEC(struct edge) edge_list;

struct instantiation {
  const struct function *function;
  const struct function_body *body;
  const struct attr *attrs; /* the caller's, and the signature's defaults */
  uint32_t attr_count;
  const char *prefix;
  struct arena *arena;
  struct graph *graph;
  struct map locals; /* names of the body's nodes -> node of the instance */
  struct map args;   /* names of the arguments -> index in the signature */
  uint32_t *first;   /* per argument of the signature: its first node; one more: where they end */
};

const struct function *function_find(const struct graph *graph, const char *name) {
  uint32_t at;
  return map_find(&graph->function_names, name, &at) ? &graph->functions.items[at] : NULL;
}

const char *function_gradient(const struct graph *graph, const char *name) {
  uint32_t at;
  return map_find(&graph->gradients, name, &at) ? graph->gradient_names.items[at] : NULL;
}

bool function_has_lists(const struct function *f) {
  for (uint32_t i = 0; i < f->arg_count + f->ret_count; i++)
    if (op_arg_is_list(i < f->arg_count ? &f->args[i] : &f->rets[i - f->arg_count]))
      return true;
  return false;
}

/* ---- attributes ---- */

static int attr_order(const void *a, const void *b) { return strcmp(((const struct attr *)a)->name, ((const struct attr *)b)->name); }

void function_attrs(const struct function *function, const struct attr *given, uint32_t given_count, struct arena *arena,
                    const struct attr **attrs, uint32_t *attr_count) {
  const struct function_body *body = function->body;
  struct attr *all = ARENA_ARRAY(arena, struct attr, given_count + body->default_count + 1);
  uint32_t count = given_count;
  if (given_count)
    memcpy(all, given, given_count * sizeof *all);
  for (uint32_t i = 0; i < body->default_count; i++)
    if (!attr_find(given, given_count, body->defaults[i].name))
      all[count++] = body->defaults[i];
  qsort(all, count, sizeof *all, attr_order);
  *attrs = all;
  *attr_count = count;
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

static status substitute_attrs(const struct instantiation *x, const struct attr *attrs, uint32_t count, const struct attr **out);

/* The value with the caller's attributes in the place of placeholders; depth is bounded by the reader. */
static status substitute(const struct instantiation *x, const struct attr_value *v, struct attr_value *out) {
  *out = *v;
  if (v->kind == ATTR_PLACEHOLDER) {
    const struct attr_value *given = attr_find(x->attrs, x->attr_count, v->s.data);
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

static status substitute_attrs(const struct instantiation *x, const struct attr *attrs, uint32_t count, const struct attr **out) {
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
  uint32_t arg;
  node.name = arena_printf(x->arena, "%s/%s", x->prefix, local);
  node.op = node.op ? node.op : "";
  if (map_find(&x->args, local, &arg) || !map_insert(&x->locals, local, x->graph->nodes.count) ||
      !map_insert(&x->graph->names, node.name, x->graph->nodes.count))
    return fail(INVALID_ARGUMENT, "two nodes or arguments are named '%s'", local);
  vec_push(&x->graph->nodes, node);
  return OK;
}

struct node function_arg_node(const char *name, int dtype, uint32_t index, struct arena *arena) {
  struct attr *attrs = ARENA_ARRAY(arena, struct attr, 2);
  attrs[0] = attr_of_type("T", dtype);
  attrs[1] = attr_of_int("index", index);
  return (struct node){.name = name, .op = "_Arg", .device = "", .attrs = attrs, .attr_count = 2};
}

/* The dtypes of an argument or result for the caller's attributes. */
static status arg_dtypes(const struct instantiation *x, const struct op_arg *arg, dtype_list *out) {
  const struct node caller = {.name = "the caller", .op = x->function->name, .attrs = x->attrs, .attr_count = x->attr_count};
  status s = registry_arg_dtypes(&caller, arg, out);
  return s == OK ? OK : status_prefix(s, "argument '%s': ", arg->name);
}

/* The nodes of argument `index` of the signature: one, or those of a list. */
static status add_arg(struct instantiation *x, uint32_t index) {
  const struct op_arg *arg = &x->function->args[index];
  dtype_list dtypes = {0};
  status s = arg_dtypes(x, arg, &dtypes);
  x->first[index] = x->graph->nodes.count;
  if (s == OK && !map_insert(&x->args, arg->name, index))
    s = fail(INVALID_ARGUMENT, "two nodes or arguments are named '%s'", arg->name);
  for (uint32_t i = 0; i < dtypes.count && s == OK; i++) {
    uint32_t at = x->graph->nodes.count;
    const char *local = op_arg_is_list(arg) ? arena_printf(x->arena, "%s_%u", arg->name, i) : arg->name;
    struct node node = function_arg_node(arena_printf(x->arena, "%s/%s", x->prefix, local), dtypes.items[i], at, x->arena);
    if (!map_insert(&x->graph->names, node.name, at))
      s = fail(INVALID_ARGUMENT, "two nodes or arguments are named '%s'", local);
    vec_push(&x->graph->nodes, node);
  }
  vec_free(&dtypes);
  return s;
}

static status add_body_node(struct instantiation *x, const struct function_node *n) {
  struct node node = {.op = n->op, .device = n->device, .attr_count = n->attr_count, .def = registry_find(n->op)};
  status s = substitute_attrs(x, n->attrs, n->attr_count, &node.attrs);
  if (s != OK)
    return status_prefix(s, "%s/%s (%s): ", x->prefix, n->name, n->op);
  return add_node(x, n->name, node);
}

/* ---- edges ---- */

/* The ports of the output argument `name`: from *first on *count of them. */
static status find_output(const struct instantiation *x, const struct node *n, const char *name, uint32_t *first, uint32_t *count) {
  const struct function *callee = n->def ? NULL : function_find(x->graph, n->op);
  const struct op_arg *outputs = n->def ? n->def->outputs : callee ? callee->rets : NULL;
  uint32_t output_count = n->def ? n->def->output_count : callee ? callee->ret_count : 0;
  if (!n->def && !callee)
    return registry_unknown_op(x->graph, n);
  struct node full = *n;
  if (callee)
    function_attrs(callee, n->attrs, n->attr_count, x->arena, &full.attrs, &full.attr_count);
  dtype_list dtypes = {0};
  bool found = false;
  status s = OK;
  for (uint32_t i = 0; i < output_count && s == OK && !found; i++) {
    *first = dtypes.count;
    s = registry_arg_dtypes(&full, &outputs[i], &dtypes);
    found = strcmp(outputs[i].name, name) == 0;
  }
  *count = dtypes.count - *first;
  vec_free(&dtypes);
  return s != OK || found ? s : fail(INVALID_ARGUMENT, "'%s' (%s) has no output '%s'", n->name, n->op, name);
}

static bool port_parse(const char *text, uint32_t *out) {
  char *end;
  if (*text < '0' || *text > '9')
    return false;
  unsigned long long value = strtoull(text, &end, 10);
  *out = (uint32_t)value;
  return !*end && value < LIMIT_NODE_INPUTS;
}

/* "arg", which is all of a list, or "arg:1" */
static status resolve_arg(const struct instantiation *x, const char *text, uint32_t index, const char *rest, edge_list *out) {
  uint32_t first = x->first[index], count = x->first[index + 1] - first, port = 0;
  if (*rest && (!port_parse(rest, &port) || port >= count))
    return fail(INVALID_ARGUMENT, "input '%s' is none of the %u tensors of the argument", text, count);
  for (uint32_t i = *rest ? port : 0; i < (*rest ? port + 1 : count); i++)
    vec_push(out, (struct edge){first + i, 0});
  return OK;
}

/* "node:out_arg", which is all of a list, "node:out_arg:1", or "node:1" */
static status resolve_output(const struct instantiation *x, const char *text, uint32_t node, const char *rest, edge_list *out) {
  uint32_t port = 0;
  if (!*rest || port_parse(rest, &port)) {
    vec_push(out, (struct edge){node, port});
    return OK;
  }
  size_t arg_length = strcspn(rest, ":");
  const char *arg = arena_strndup(x->arena, rest, arg_length);
  const struct node *n = &x->graph->nodes.items[node];
  uint32_t first = 0, count;
  status s = find_output(x, n, arg, &first, &count);
  if (s != OK)
    return status_prefix(s, "input '%s': ", text);
  if (rest[arg_length] && !port_parse(rest + arg_length + 1, &port))
    return fail(INVALID_ARGUMENT, "input '%s' has no number of an output at its end", text);
  if (rest[arg_length] && port >= count)
    return fail(INVALID_ARGUMENT, "input '%s' is none of the %u tensors of the output", text, count);
  for (uint32_t i = rest[arg_length] ? port : 0; i < (rest[arg_length] ? port + 1 : count); i++)
    vec_push(out, (struct edge){node, first + i});
  return OK;
}

/* The tensors that a source of the body names, appended. */
static status resolve(const struct instantiation *x, const char *text, edge_list *out) {
  size_t length = strcspn(text, ":");
  const char *local = arena_strndup(x->arena, text, length), *rest = text[length] ? text + length + 1 : "";
  uint32_t at;
  if (map_find(&x->args, local, &at))
    return resolve_arg(x, text, at, rest, out);
  if (map_find(&x->locals, local, &at))
    return resolve_output(x, text, at, rest, out);
  return fail(INVALID_ARGUMENT, "input '%s' is no node or argument of the function", text);
}

/* The node that a control edge names. */
static status resolve_control(const struct instantiation *x, const char *text, uint32_t *out) {
  uint32_t at;
  if (map_find(&x->locals, text, out))
    return OK;
  if (!map_find(&x->args, text, &at) || x->first[at] == x->first[at + 1])
    return fail(INVALID_ARGUMENT, "control input '%s' is no node or argument of the function", text);
  *out = x->first[at];
  return OK;
}

static status resolve_inputs(struct instantiation *x, const struct function_node *n, struct node *node) {
  uint32_t *controls = ARENA_ARRAY(x->arena, uint32_t, n->input_count + 1);
  edge_list inputs = {0};
  status s = OK;
  for (uint32_t i = 0; i < n->input_count && s == OK; i++) {
    s = n->inputs[i][0] == '^' ? resolve_control(x, n->inputs[i] + 1, &controls[node->control_count++]) : resolve(x, n->inputs[i], &inputs);
    if (s == OK && inputs.count > LIMIT_NODE_INPUTS)
      s = fail(RESOURCE_EXHAUSTED, "has %u inputs", inputs.count);
  }
  node->inputs = arena_copy(x->arena, inputs.items, inputs.count * sizeof *inputs.items);
  node->input_count = inputs.count;
  node->controls = controls;
  vec_free(&inputs);
  return s == OK ? OK : status_prefix(s, "%s (%s): ", node->name, node->op);
}

/* The tensors of one result of the signature, appended. */
static status resolve_ret(struct instantiation *x, uint32_t index, edge_list *out) {
  const struct op_arg *ret = &x->function->rets[index];
  uint32_t first = out->count;
  dtype_list dtypes = {0};
  status s = arg_dtypes(x, ret, &dtypes);
  if (s == OK)
    s = resolve(x, x->body->ret_sources[index], out);
  if (s == OK && out->count - first != dtypes.count)
    s = fail(INVALID_ARGUMENT, "its result '%s' has %u tensors, its source '%s' has %u", ret->name, dtypes.count,
             x->body->ret_sources[index], out->count - first);
  for (uint32_t i = first; i < out->count && s == OK; i++) {
    const struct node *n = &x->graph->nodes.items[out->items[i].node];
    if (out->items[i].port >= n->output_count)
      s = fail(INVALID_ARGUMENT, "its result '%s' is output %u of '%s' (%s), which has %u", ret->name, out->items[i].port, n->name, n->op,
               n->output_count);
  }
  vec_free(&dtypes);
  return s;
}

static status resolve_results(struct instantiation *x, struct instance *out) {
  uint32_t *controls = ARENA_ARRAY(x->arena, uint32_t, x->body->control_count + 1);
  edge_list rets = {0};
  status s = OK;
  for (uint32_t i = 0; i < x->function->ret_count && s == OK; i++) {
    s = resolve_ret(x, i, &rets);
    if (s == OK && rets.count > LIMIT_NODE_INPUTS)
      s = fail(RESOURCE_EXHAUSTED, "has more than %d results", LIMIT_NODE_INPUTS);
  }
  for (uint32_t i = 0; i < x->body->control_count && s == OK; i++)
    s = resolve_control(x, x->body->control_sources[i], &controls[i]);
  out->rets = arena_copy(x->arena, rets.items, rets.count * sizeof *rets.items);
  out->ret_count = rets.count;
  out->controls = controls;
  out->control_count = x->body->control_count;
  vec_free(&rets);
  return s;
}

static status fill(struct instantiation *x, struct instance *out) {
  for (uint32_t i = 0; i < x->function->arg_count; i++) {
    TRY(add_arg(x, i));
    if (x->graph->nodes.count > LIMIT_NODE_INPUTS)
      return fail(RESOURCE_EXHAUSTED, "has more than %d arguments", LIMIT_NODE_INPUTS);
  }
  out->arg_count = x->first[x->function->arg_count] = x->graph->nodes.count;
  for (uint32_t i = 0; i < x->body->node_count; i++)
    TRY(add_body_node(x, &x->body->nodes[i]));
  for (uint32_t i = 0; i < x->body->node_count; i++)
    TRY(resolve_inputs(x, &x->body->nodes[i], &x->graph->nodes.items[out->arg_count + i]));
  TRY(registry_check(x->graph));
  return resolve_results(x, out);
}

status function_ret_count(const struct function *function, const struct attr *attrs, uint32_t attr_count, struct arena *arena,
                          uint32_t *out) {
  struct instantiation x = {.function = function, .arena = arena};
  dtype_list dtypes = {0};
  status s = OK;
  function_attrs(function, attrs, attr_count, arena, &x.attrs, &x.attr_count);
  for (uint32_t i = 0; i < function->ret_count && s == OK; i++)
    s = arg_dtypes(&x, &function->rets[i], &dtypes);
  *out = dtypes.count;
  vec_free(&dtypes);
  return s;
}

struct graph *function_graph(const struct graph *library, struct arena *arena) {
  struct graph *graph = ARENA_NEW(arena, struct graph);
  graph->arena = arena;
  graph->functions = library->functions;
  graph->function_names = library->function_names;
  graph->gradients = library->gradients;
  graph->gradient_names = library->gradient_names;
  graph->producer = library->producer;
  return graph;
}

status function_add_node(struct graph *graph, const char *prefix, struct node node, uint32_t *out) {
  uint32_t at = graph->nodes.count;
  struct attr *attrs = arena_copy(graph->arena, node.attrs, node.attr_count * sizeof *attrs);
  if (node.attr_count)
    qsort(attrs, node.attr_count, sizeof *attrs, attr_order);
  node.attrs = attrs;
  node.inputs = arena_copy(graph->arena, node.inputs, node.input_count * sizeof *node.inputs);
  node.device = "";
  if (!node.name)
    node.name = arena_printf(graph->arena, "%s/%s_%u", prefix, node.op, at);
  for (uint32_t n = 1; !map_insert(&graph->names, node.name, at); n++)
    node.name = arena_printf(graph->arena, "%s_%u", node.name, n);
  vec_push(&graph->nodes, node);
  *out = at;
  return registry_check_node(graph, &graph->nodes.items[at]);
}

status function_instantiate(const struct graph *library, const struct function *function, const struct attr *attrs, uint32_t attr_count,
                            const char *prefix, struct arena *arena, struct instance *out) {
  struct instantiation x = {.function = function,
                            .body = function->body,
                            .prefix = prefix,
                            .arena = arena,
                            .graph = function_graph(library, arena),
                            .first = ARENA_ARRAY(arena, uint32_t, function->arg_count + 1)};
  function_attrs(function, attrs, attr_count, arena, &x.attrs, &x.attr_count);
  struct instance made = {.graph = x.graph};
  status s = fill(&x, &made);
  map_deinit(&x.locals);
  map_deinit(&x.args);
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
