/* methods.c: the functions of a SavedModel's root object that no signature runs (`train_step`, `call`) become calls in the graph, with
 * placeholders for their arguments, so that entries may name them. What a function has captured is an object; which node makes it is
 * known from other calls that captured it, from the operation that restores it, or said by the object itself. */
#include <string.h>

#include "compiler/pass/pass.h"
#include "compiler/pass/restore_keys.h"
#include "compiler/read/read.h"
#include "ir/graph/function.h"
#include "ir/graph/registry.h"

#define UNKNOWN ((struct edge){NO_NODE, 0})

/* ---- where objects are in the graph ---- */

static const struct captures *captures_of(const struct model *model, const char *function) {
  for (uint32_t i = 0; i < model->captures.count; i++)
    if (strcmp(model->captures.items[i].function, function) == 0)
      return &model->captures.items[i];
  return NULL;
}

/* The function that a node calls; NULL: none. */
static const char *called(const struct node *node) {
  const struct attr_value *f = node->def ? attr_find(node->attrs, node->attr_count, "f") : NULL;
  return f && f->kind == ATTR_FUNC ? f->func->name : node->def ? NULL : node->op;
}

static void edges_of_calls(const struct model *model, struct edge *edges) {
  for (uint32_t i = 0; i < model->graph->nodes.count; i++) {
    const struct node *call = &model->graph->nodes.items[i];
    const char *function = called(call);
    const struct captures *c = function ? captures_of(model, function) : NULL;
    for (uint32_t k = 0; c && k < c->count && c->count <= call->input_count; k++)
      if (c->objects[k] < model->objects.count)
        edges[c->objects[k]] = call->inputs[call->input_count - c->count + k];
  }
}

static void edges_of_values(const struct model *model, struct edge *edges) {
  for (uint32_t i = 0; i < model->objects.count; i++) {
    const struct object *object = &model->objects.items[i];
    uint32_t node = object->constant ? graph_find(model->graph, object->constant) : NO_NODE;
    if (node != NO_NODE)
      edges[i] = (struct edge){node, 0};
    if (object->asset && object->asset <= model->assets.count &&
        graph_find_output(model->graph, model->assets.items[object->asset - 1].tensor, &edges[i]) != OK)
      edges[i] = UNKNOWN;
  }
}

/* The variable of that name. */
static uint32_t variable_find(const struct graph *graph, const char *name, const char *container) {
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *n = &graph->nodes.items[i];
    if (strcmp(n->op, "VarHandleOp") != 0)
      continue;
    const char *shared = node_attr_string(n, "shared_name", ""), *own = node_attr_string(n, "container", "");
    if (strcmp(*shared ? shared : n->name, name) == 0 && strcmp(*own ? own : "localhost", container) == 0)
      return i;
  }
  return NO_NODE;
}

/* "t/table" is under "t/table-keys" and "t/table-values". */
static bool is_part_of(const char *key, const char *object_key) {
  size_t length = strlen(object_key);
  return strncmp(key, object_key, length) == 0 && key[length] == '-';
}

static status edges_of_tables(struct build *b, const char *const *object_keys, struct edge *edges) {
  struct restore_tables tables = {0};
  status s = restore_tables_find(&b->model, &b->arena, &tables);
  for (uint32_t i = 0; i < b->model.objects.count && s == OK; i++)
    for (uint32_t k = 0; k < tables.count && edges[i].node == NO_NODE && object_keys[i]; k++)
      if (is_part_of(tables.items[k].keys, object_keys[i]))
        edges[i] = tables.items[k].handle;
  vec_free(&tables);
  return s;
}

static status edges_of_restored(struct build *b, struct edge *edges) {
  struct bundle *bundle;
  struct restore_keys keys = {0};
  const char **object_keys;
  if (!b->model.variables_prefix)
    return OK;
  TRY(bundle_open(b->model.variables_prefix, &b->arena, &bundle));
  TRY(object_keys_read(bundle, &b->model, &b->arena, &object_keys));
  status s = restore_keys_find(&b->model, &b->arena, &keys);
  struct map numbers = {0};
  for (uint32_t i = 0; i < keys.count; i++)
    map_insert(&numbers, keys.items[i].key, i);
  for (uint32_t i = 0; i < b->model.objects.count && s == OK; i++) {
    uint32_t at;
    if (edges[i].node == NO_NODE && object_keys[i] && map_find(&numbers, object_keys[i], &at))
      edges[i] = (struct edge){variable_find(b->model.graph, keys.items[at].name, keys.items[at].container), 0};
  }
  map_deinit(&numbers);
  vec_free(&keys);
  return s == OK ? edges_of_tables(b, object_keys, edges) : s;
}

/* ---- calls ---- */

static bool body_calls(const struct function *function, const char *name) {
  for (uint32_t i = 0; function && i < function->body->node_count; i++) {
    const struct function_node *n = &function->body->nodes[i];
    const struct attr_value *f = attr_find(n->attrs, n->attr_count, "f");
    if (strcmp(n->op, name) == 0 || (f && f->kind == ATTR_FUNC && strcmp(f->func->name, name) == 0))
      return true;
  }
  return false;
}

/* The signature that runs this function: itself, or in the wrapper that TensorFlow puts around it. NULL: none. */
static const char *signature_of(const struct model *model, const char *name) {
  struct edge e;
  for (uint32_t i = 0; i < model->signatures.count; i++)
    for (uint32_t k = 0; k < model->signatures.items[i].outputs.count; k++) {
      const char *tensor = model->signatures.items[i].outputs.items[k].tensor;
      const char *function = graph_find_output(model->graph, tensor, &e) == OK ? called(&model->graph->nodes.items[e.node]) : NULL;
      if (function && (strcmp(function, name) == 0 || body_calls(function_find(model->graph, function), name)))
        return model->signatures.items[i].name;
    }
  return NULL;
}

static const char *free_name(struct build *b, const char *wanted) {
  const char *name = wanted;
  for (uint32_t i = 1; graph_find(b->model.graph, name) != NO_NODE; i++)
    name = arena_printf(&b->arena, "%s_%u", wanted, i);
  return name;
}

static uint32_t add_node(struct build *b, struct node node) {
  struct graph *g = b->model.graph;
  map_insert(&g->names, node.name, g->nodes.count);
  vec_push(&g->nodes, node);
  return g->nodes.count - 1;
}

static uint32_t add_placeholder(struct build *b, const char *name, uint8_t dtype, const struct attr_shape *shape) {
  struct attr *attrs = ARENA_ARRAY(&b->arena, struct attr, 2);
  attrs[0] = attr_of_type("dtype", dtype);
  attrs[1] = (struct attr){.name = "shape", .value = {.kind = ATTR_SHAPE, .shape = *shape}};
  return add_node(b, (struct node){.name = name, .op = "Placeholder", .device = "", .attrs = attrs, .attr_count = 2});
}

static bool names_differ(const struct captures *c) {
  for (uint32_t i = 0; i < c->input_count; i++) {
    if (!*c->inputs[i].key || c->inputs[i].key[strcspn(c->inputs[i].key, " ,|=>:")])
      return false;
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(c->inputs[i].key, c->inputs[k].key) == 0)
        return false;
  }
  return true;
}

/* Whether the function takes what Python gave it, and then what it has captured; all of it is in the graph. */
static bool can_call(const struct function *f, const struct captures *c, const struct edge *edges, uint32_t object_count) {
  bool fits = f && !function_has_lists(f) && !c->is_opaque && f->arg_count == c->input_count + c->count && f->ret_count == c->output_count;
  for (uint32_t i = 0; fits && i < c->input_count; i++)
    fits = f->args[i].dtype != 0;
  for (uint32_t i = 0; fits && i < c->count; i++)
    fits = c->objects[i] < object_count && edges[c->objects[i]].node != NO_NODE;
  return fits;
}

static void add_call(struct build *b, struct method *m, const struct edge *edges) {
  const struct captures *c = &b->model.captures.items[m->function];
  const struct function *f = function_find(b->model.graph, c->function);
  if (!can_call(f, c, edges, b->model.objects.count))
    return;
  bool own_names = names_differ(c);
  const char *name = free_name(b, m->name);
  struct edge *inputs = ARENA_ARRAY(&b->arena, struct edge, f->arg_count + 1);
  struct structured_port *ports = arena_copy(&b->arena, c->inputs, c->input_count * sizeof *ports);
  for (uint32_t i = 0; i < c->input_count; i++) {
    ports[i].key = own_names ? ports[i].key : f->args[i].name;
    const char *place = free_name(b, arena_printf(&b->arena, "%s/%s", name, ports[i].key));
    inputs[i] = (struct edge){add_placeholder(b, place, f->args[i].dtype, &ports[i].shape), 0};
  }
  for (uint32_t i = 0; i < c->count; i++)
    inputs[c->input_count + i] = edges[c->objects[i]];
  add_node(b, (struct node){.name = name, .op = f->name, .device = "", .inputs = inputs, .input_count = f->arg_count});
  b->model.captures.items[m->function].inputs = ports;
  m->node = name;
}

status pass_methods(struct build *b) {
  struct model *model = &b->model;
  if (!model->methods.count)
    return OK;
  struct edge *edges = ARENA_ARRAY(&b->arena, struct edge, model->objects.count + 1);
  for (uint32_t i = 0; i < model->objects.count; i++)
    edges[i] = UNKNOWN;
  edges_of_calls(model, edges);
  edges_of_values(model, edges);
  TRY(edges_of_restored(b, edges));
  for (uint32_t i = 0; i < model->methods.count; i++) {
    struct method *method = &model->methods.items[i];
    method->signature = signature_of(model, model->captures.items[method->function].function);
    if (!method->signature)
      add_call(b, method, edges);
  }
  return registry_check(model->graph);
}
