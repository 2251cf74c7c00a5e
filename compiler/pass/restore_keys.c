/* restore_keys.c: what the restore operation of a SavedModel assigns. TensorFlow 1 writes Assign nodes behind a RestoreV2 into
 * the graph, TensorFlow 2 a function whose arguments are the handles; either way the names that RestoreV2 reads are constants,
 * such as "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", of which the graph's variables know nothing. */
#include "compiler/pass/restore_keys.h"

#include <string.h>

#include "base/tensor.h"
#include "ir/graph/function.h"
#include "ir/graph/registry.h"

/* A graph with assignments, and where the arguments come from when it is the body of a function. */
struct scene {
  const struct graph *graph, *outer;
  const struct node *call;
  struct arena *arena;
  struct restore_keys *out;
  struct restore_tables *tables;
};

static bool is_op(const struct node *n, const char *op) { return strcmp(n->op, op) == 0; }

/* The edge behind identities and casts of a restored value. */
static struct edge follow(const struct graph *g, struct edge e) {
  for (int depth = 0; depth < LIMIT_NESTING; depth++) {
    const struct node *n = &g->nodes.items[e.node];
    if (!is_op(n, "Identity") || n->input_count == 0)
      break;
    e = n->inputs[0];
  }
  return e;
}

/* String `index` of the constant that feeds input `input`; NULL when that is no constant. */
static const struct string_view *constant_string(const struct graph *g, const struct node *n, uint32_t input, uint32_t index) {
  if (input >= n->input_count)
    return NULL;
  const struct node *from = &g->nodes.items[follow(g, n->inputs[input]).node];
  const struct attr_value *value = is_op(from, "Const") ? node_attr(from, "value") : NULL;
  if (!value || value->kind != ATTR_TENSOR || value->tensor->dtype != DTYPE_STRING || index >= value->tensor->count)
    return NULL;
  return (const struct string_view *)value->tensor->data + index;
}

/* Where the handle comes from that is a node's first input: in the graph itself, or through an argument in the one that calls. */
static struct edge handle_source(const struct scene *s, const struct node *user, const struct graph **in) {
  struct edge e = follow(s->graph, user->inputs[0]);
  const struct node *n = &s->graph->nodes.items[e.node];
  uint32_t index = s->call && is_op(n, "_Arg") ? (uint32_t)node_attr_int(n, "index", 0) : UINT32_MAX;
  bool is_argument = s->call && index < s->call->input_count;
  *in = is_argument ? s->outer : s->graph;
  return is_argument ? follow(s->outer, s->call->inputs[index]) : e;
}

/* The node that makes the variable which `assign` updates. */
static const struct node *assigned_variable(const struct scene *s, const struct node *assign) {
  const struct graph *in;
  struct edge e = handle_source(s, assign, &in);
  return &in->nodes.items[e.node];
}

static void note_key(const struct scene *s, const struct node *variable, const char *key, const char *slice) {
  const char *shared = node_attr_string(variable, "shared_name", ""), *container = node_attr_string(variable, "container", "");
  vec_push(s->out,
           (struct restore_key){
             .name = *shared ? shared : variable->name, .container = *container ? container : "localhost", .key = key, .slice = slice});
}

static void note_assignment(const struct scene *s, const struct node *assign) {
  if (assign->input_count < 2)
    return;
  struct edge value = follow(s->graph, assign->inputs[1]);
  const struct node *restore = &s->graph->nodes.items[value.node];
  const struct node *variable = assigned_variable(s, assign);
  if (!is_op(restore, "RestoreV2"))
    return;
  const struct string_view *key = constant_string(s->graph, restore, 1, value.port);
  const struct string_view *slice = constant_string(s->graph, restore, 2, value.port);
  if (!key || !variable->def)
    return;
  note_key(s, variable, arena_strndup(s->arena, key->data, key->size), slice ? arena_strndup(s->arena, slice->data, slice->size) : "");
}

/* The key under which input `input` is restored; NULL when it is not. */
static const char *restored_key(const struct scene *s, const struct node *n, uint32_t input) {
  struct edge value = follow(s->graph, n->inputs[input]);
  const struct node *restore = &s->graph->nodes.items[value.node];
  const struct string_view *key = is_op(restore, "RestoreV2") ? constant_string(s->graph, restore, 1, value.port) : NULL;
  return key ? arena_strndup(s->arena, key->data, key->size) : NULL;
}

static void note_import(const struct scene *s, const struct node *n) {
  const char *keys = n->input_count == 3 ? restored_key(s, n, 1) : NULL, *values = n->input_count == 3 ? restored_key(s, n, 2) : NULL;
  const struct graph *in;
  struct edge handle = handle_source(s, n, &in);
  if (keys && values && in == (s->outer ? s->outer : s->graph))
    vec_push(s->tables, (struct restore_table){handle, keys, values});
}

static void note_assignments(const struct scene *s) {
  for (uint32_t i = 0; i < s->graph->nodes.count; i++) {
    const struct node *n = &s->graph->nodes.items[i];
    if (s->out && (is_op(n, "AssignVariableOp") || is_op(n, "Assign")))
      note_assignment(s, n);
    if (s->tables && is_op(n, "LookupTableImportV2"))
      note_import(s, n);
  }
}

/* ---- objects ---- */

/* A variable that a function has captured is an object of the model, whatever the graph calls it. */
static void note_captures(const struct model *model, const char *const *object_keys, const struct node *call, struct scene *s) {
  const struct attr_value *f = call->def ? node_attr(call, "f") : NULL;
  const char *name = f && f->kind == ATTR_FUNC ? f->func->name : call->op;
  for (uint32_t i = 0; i < model->captures.count; i++) {
    const struct captures *c = &model->captures.items[i];
    if (strcmp(c->function, name) != 0 || c->count > call->input_count)
      continue;
    for (uint32_t k = 0; k < c->count; k++) {
      const struct node *variable = &s->graph->nodes.items[follow(s->graph, call->inputs[call->input_count - c->count + k]).node];
      const char *key = c->objects[k] < model->objects.count ? object_keys[c->objects[k]] : NULL;
      if (!key || !is_op(variable, "VarHandleOp"))
        continue;
      note_key(s, variable, key, "");
      vec_last(s->out).is_sum = model->objects.items[c->objects[k]].is_sum;
    }
  }
}

void restore_keys_of_objects(const struct model *model, const char *const *object_keys, struct arena *arena, struct restore_keys *out) {
  struct scene scene = {.graph = model->graph, .arena = arena, .out = out};
  for (uint32_t i = 0; i < model->graph->nodes.count; i++)
    note_captures(model, object_keys, &model->graph->nodes.items[i], &scene);
}

/* ---- the restore operation ---- */

static status look_into(const struct model *model, struct arena *arena, struct restore_keys *out, struct restore_tables *tables) {
  const struct graph *g = model->graph;
  uint32_t at = model->restore_op ? graph_find(g, model->restore_op) : NO_NODE;
  if (at == NO_NODE)
    return OK;
  const struct node *call = &g->nodes.items[at];
  struct scene scene = {.graph = g, .arena = arena, .out = out, .tables = tables};
  const struct attr_value *f = call->def ? node_attr(call, "f") : NULL;
  bool is_call = f && f->kind == ATTR_FUNC;
  const struct function *function = function_find(g, is_call ? f->func->name : call->op);
  if (!function) {
    note_assignments(&scene);
    return OK;
  }
  struct instance body;
  TRY(function_instantiate(g, function, is_call ? f->func->attrs : call->attrs, is_call ? f->func->attr_count : call->attr_count,
                           call->name, arena, &body));
  scene = (struct scene){.graph = body.graph, .outer = g, .call = call, .arena = arena, .out = out, .tables = tables};
  note_assignments(&scene);
  instance_deinit(&body);
  return OK;
}

status restore_keys_find(const struct model *model, struct arena *arena, struct restore_keys *out) {
  return look_into(model, arena, out, NULL);
}

status restore_tables_find(const struct model *model, struct arena *arena, struct restore_tables *out) {
  return look_into(model, arena, NULL, out);
}
