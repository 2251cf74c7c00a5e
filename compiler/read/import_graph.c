/* import_graph.c: GraphDef to nodes with resolved edges. */
#include <stdlib.h>
#include <string.h>

#include "compiler/read/import.h"
#include "ir/graph/implementation.h"

/* ---- attributes ---- */

static status import_value(const Tensorflow__AttrValue *v, struct arena *arena, int depth, struct attr_value *out);

void import_shape(const Tensorflow__TensorShapeProto *s, struct arena *arena, struct attr_value *out) {
  out->kind = ATTR_SHAPE;
  out->shape.unknown_rank = s->unknown_rank;
  out->shape.rank = (int)s->n_dim;
  int64_t *dims = ARENA_ARRAY(arena, int64_t, s->n_dim);
  for (size_t i = 0; i < s->n_dim; i++)
    dims[i] = s->dim[i]->size < 0 ? -1 : s->dim[i]->size;
  out->shape.dims = dims;
}

static void import_string(const void *data, size_t size, struct arena *arena, struct attr_value *out) {
  out->kind = ATTR_STRING;
  out->s.data = arena_strndup(arena, data ? data : "", size);
  out->s.size = size;
}

static int attr_order(const void *a, const void *b) { return strcmp(((const struct attr *)a)->name, ((const struct attr *)b)->name); }

static status import_entries(Tensorflow__AttrEntry *const *entries, size_t count, struct arena *arena, int depth, const struct attr **out) {
  struct attr *attrs = ARENA_ARRAY(arena, struct attr, count + 1);
  for (size_t i = 0; i < count; i++) {
    attrs[i].name = arena_strdup(arena, entries[i]->key);
    if (!entries[i]->value)
      return fail(INVALID_ARGUMENT, "attribute '%s' has no value", entries[i]->key);
    status s = import_value(entries[i]->value, arena, depth, &attrs[i].value);
    if (s != OK)
      return status_prefix(s, "attribute '%s': ", entries[i]->key);
  }
  qsort(attrs, count, sizeof *attrs, attr_order);
  *out = attrs;
  return OK;
}

static status import_func(const Tensorflow__NameAttrList *f, struct arena *arena, int depth, struct attr_value *out) {
  struct attr_func *func = ARENA_NEW(arena, struct attr_func);
  func->name = arena_strdup(arena, f->name);
  func->attr_count = (uint32_t)f->n_attr;
  out->kind = ATTR_FUNC;
  out->func = func;
  return import_entries(f->attr, f->n_attr, arena, depth, &func->attrs);
}

/* A list value takes a hundred times its byte in the file; what is long is a tensor. */
#define LIST_MAX (1 << 16)

static status import_list(const Tensorflow__AttrValue__ListValue *l, struct arena *arena, int depth, struct attr_value *out) {
  size_t count = l->n_s + l->n_i + l->n_f + l->n_b + l->n_type + l->n_shape + l->n_tensor + l->n_func;
  if (count > LIST_MAX)
    return fail(RESOURCE_EXHAUSTED, "a list of %zu values", count);
  struct attr_value *items = ARENA_ARRAY(arena, struct attr_value, count + 1), *v = items;
  out->kind = ATTR_LIST;
  out->list.items = items;
  out->list.count = (uint32_t)count;
  for (size_t i = 0; i < l->n_s; i++)
    import_string(l->s[i].data, l->s[i].len, arena, v++);
  for (size_t i = 0; i < l->n_i; i++)
    *v++ = (struct attr_value){.kind = ATTR_INT, .i = l->i[i]};
  for (size_t i = 0; i < l->n_f; i++)
    *v++ = (struct attr_value){.kind = ATTR_FLOAT, .f = (double)l->f[i]};
  for (size_t i = 0; i < l->n_b; i++)
    *v++ = (struct attr_value){.kind = ATTR_BOOL, .i = l->b[i]};
  for (size_t i = 0; i < l->n_type; i++)
    *v++ = (struct attr_value){.kind = ATTR_TYPE, .i = l->type[i]};
  for (size_t i = 0; i < l->n_shape; i++)
    import_shape(l->shape[i], arena, v++);
  for (size_t i = 0; i < l->n_tensor; i++, v++) {
    v->kind = ATTR_TENSOR;
    TRY(import_tensor(l->tensor[i], arena, &v->tensor));
  }
  for (size_t i = 0; i < l->n_func; i++)
    TRY(import_func(l->func[i], arena, depth + 1, v++));
  return OK;
}

static status import_value(const Tensorflow__AttrValue *v, struct arena *arena, int depth, struct attr_value *out) {
  if (depth > LIMIT_NESTING)
    return fail(INVALID_ARGUMENT, "nested more than %d deep", LIMIT_NESTING);
  *out = (struct attr_value){0};
  switch (v->value_case) {
  case TENSORFLOW__ATTR_VALUE__VALUE_S: import_string(v->s.data, v->s.len, arena, out); return OK;
  case TENSORFLOW__ATTR_VALUE__VALUE_I: *out = (struct attr_value){.kind = ATTR_INT, .i = v->i}; return OK;
  case TENSORFLOW__ATTR_VALUE__VALUE_F: *out = (struct attr_value){.kind = ATTR_FLOAT, .f = (double)v->f}; return OK;
  case TENSORFLOW__ATTR_VALUE__VALUE_B: *out = (struct attr_value){.kind = ATTR_BOOL, .i = v->b}; return OK;
  case TENSORFLOW__ATTR_VALUE__VALUE_TYPE: *out = (struct attr_value){.kind = ATTR_TYPE, .i = v->type}; return OK;
  case TENSORFLOW__ATTR_VALUE__VALUE_SHAPE: import_shape(v->shape, arena, out); return OK;
  case TENSORFLOW__ATTR_VALUE__VALUE_TENSOR: out->kind = ATTR_TENSOR; return import_tensor(v->tensor, arena, &out->tensor);
  case TENSORFLOW__ATTR_VALUE__VALUE_LIST: return import_list(v->list, arena, depth, out);
  case TENSORFLOW__ATTR_VALUE__VALUE_FUNC: return import_func(v->func, arena, depth + 1, out);
  case TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER:
    import_string(v->placeholder, strlen(v->placeholder), arena, out);
    out->kind = ATTR_PLACEHOLDER;
    return OK;
  default: out->kind = ATTR_NONE; return OK;
  }
}

status import_attrs(const Tensorflow__AttrEntry *const *entries, size_t count, struct arena *arena, const struct attr **out) {
  return import_entries((Tensorflow__AttrEntry *const *)entries, count, arena, 0, out);
}

/* ---- nodes ---- */

/* The number behind the last colon; false when there is none that a port could have. */
static bool take_port(const char *name, const char **colon, uint32_t *out) {
  uint64_t value = 0;
  *colon = strrchr(name, ':');
  if (!*colon || !(*colon)[1])
    return false;
  for (const char *p = *colon + 1; *p; p++) {
    if (*p < '0' || *p > '9' || value >= LIMIT_NODE_INPUTS)
      return false;
    value = value * 10 + (uint64_t)(*p - '0');
  }
  *out = (uint32_t)value;
  return true;
}

/* "a", "a:1" or "^a" */
static status import_input(const struct graph *g, const struct node *n, const char *text, struct edge *out, bool *is_control) {
  *is_control = text[0] == '^';
  const char *name = text + *is_control, *colon;
  uint32_t port = 0;
  bool has_port = !*is_control && take_port(name, &colon, &port);
  char *bare = strndup(name, has_port ? (size_t)(colon - name) : strlen(name));
  uint32_t node = graph_find(g, bare);
  free(bare);
  if (node == NO_NODE)
    return fail(INVALID_ARGUMENT, "%s (%s): input '%s' is no node of the graph", n->name, n->op, text);
  *out = (struct edge){node, port};
  return OK;
}

static status import_inputs(struct graph *g, const Tensorflow__NodeDef *def, struct node *n) {
  if (def->n_input > LIMIT_NODE_INPUTS)
    return fail(RESOURCE_EXHAUSTED, "%s (%s): has %zu inputs", n->name, n->op, def->n_input);
  struct edge *inputs = ARENA_ARRAY(g->arena, struct edge, def->n_input + 1), e;
  uint32_t *controls = ARENA_ARRAY(g->arena, uint32_t, def->n_input + 1);
  for (size_t i = 0; i < def->n_input; i++) {
    bool is_control;
    TRY(import_input(g, n, def->input[i], &e, &is_control));
    if (is_control)
      controls[n->control_count++] = e.node;
    else
      inputs[n->input_count++] = e;
  }
  n->inputs = inputs;
  n->controls = controls;
  return OK;
}

static status import_node(struct graph *g, const Tensorflow__NodeDef *def) {
  struct node n = {.name = arena_strdup(g->arena, def->name),
                   .op = arena_strdup(g->arena, def->op),
                   .device = arena_strdup(g->arena, def->device),
                   .attr_count = (uint32_t)def->n_attr};
  if (!*n.name || !*n.op)
    return fail(INVALID_ARGUMENT, "node %u has no %s", g->nodes.count, *n.name ? "op" : "name");
  status s = import_entries(def->attr, def->n_attr, g->arena, 0, &n.attrs);
  if (s != OK)
    return status_prefix(s, "%s (%s): ", n.name, n.op);
  if (!map_insert(&g->names, n.name, g->nodes.count))
    return fail(INVALID_ARGUMENT, "%s (%s): two nodes have this name", n.name, n.op);
  vec_push(&g->nodes, n);
  return OK;
}

status import_graph(const Tensorflow__GraphDef *def, struct arena *arena, struct graph **out) {
  struct graph *g = ARENA_NEW(arena, struct graph);
  g->arena = arena;
  g->producer = def->versions ? def->versions->producer : 0;
  *out = g; /* also of a failure: it is freed with the model */
  if (def->n_node > LIMIT_NODES)
    return fail(RESOURCE_EXHAUSTED, "the graph has %zu nodes", def->n_node);
  for (size_t i = 0; def->library && i < def->library->n_function; i++)
    TRY(import_function(g, def->library->function[i]));
  implementations_check(g);
  for (size_t i = 0; def->library && i < def->library->n_gradient; i++) {
    const Tensorflow__GradientDef *gradient = def->library->gradient[i];
    if (map_insert(&g->gradients, arena_strdup(arena, gradient->function_name), g->gradient_names.count))
      vec_push(&g->gradient_names, arena_strdup(arena, gradient->gradient_func));
  }
  for (size_t i = 0; i < def->n_node; i++)
    TRY(import_node(g, def->node[i]));
  for (size_t i = 0; i < def->n_node; i++)
    TRY(import_inputs(g, def->node[i], &g->nodes.items[i]));
  if (def->debug_info)
    import_places(def->debug_info, g);
  return OK;
}
