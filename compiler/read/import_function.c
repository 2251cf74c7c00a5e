/* import_function.c: FunctionDef to struct function: its signature, and its body with inputs still as texts. */
#include <string.h>

#include "compiler/read/import.h"
#include "ir/graph/function.h"
#include "ir/graph/registry.h"

static const char *const *import_texts(char *const *texts, size_t count, struct arena *arena) {
  const char **copy = ARENA_ARRAY(arena, const char *, count + 1);
  for (size_t i = 0; i < count; i++)
    copy[i] = arena_strdup(arena, texts[i]);
  return copy;
}

static status import_body_node(const Tensorflow__NodeDef *def, struct arena *arena, struct function_node *out) {
  *out = (struct function_node){.name = arena_strdup(arena, def->name),
                                .op = arena_strdup(arena, def->op),
                                .device = arena_strdup(arena, def->device),
                                .attr_count = (uint32_t)def->n_attr,
                                .input_count = (uint32_t)def->n_input};
  if (!*out->name || !*out->op)
    return fail(INVALID_ARGUMENT, "a node '%s' has no %s", out->name, *out->name ? "op" : "name");
  if (def->n_input > LIMIT_NODE_INPUTS)
    return fail(RESOURCE_EXHAUSTED, "%s (%s): has %zu inputs", out->name, out->op, def->n_input);
  out->inputs = import_texts(def->input, def->n_input, arena);
  status s = import_attrs((const Tensorflow__AttrEntry *const *)def->attr, def->n_attr, arena, &out->attrs);
  return s == OK ? OK : status_prefix(s, "%s (%s): ", out->name, out->op);
}

/* The source of the ret `name`. */
static const char *ret_source(const Tensorflow__FunctionDef *def, const char *name) {
  for (size_t i = 0; i < def->n_ret; i++)
    if (!strcmp(def->ret[i]->key, name))
      return def->ret[i]->value;
  return NULL;
}

static status import_rets(const Tensorflow__FunctionDef *def, struct arena *arena, struct function_body *body) {
  const Tensorflow__OpDef *sig = def->signature;
  const char **sources = ARENA_ARRAY(arena, const char *, sig->n_output_arg + 1);
  for (size_t i = 0; i < sig->n_output_arg; i++) {
    const char *source = ret_source(def, sig->output_arg[i]->name);
    if (!source)
      return fail(INVALID_ARGUMENT, "its result '%s' has no source", sig->output_arg[i]->name);
    sources[i] = arena_strdup(arena, source);
  }
  const char **controls = ARENA_ARRAY(arena, const char *, def->n_control_ret + 1);
  for (size_t i = 0; i < def->n_control_ret; i++)
    controls[i] = arena_strdup(arena, def->control_ret[i]->value);
  body->ret_sources = sources;
  body->control_sources = controls;
  body->control_count = (uint32_t)def->n_control_ret;
  return OK;
}

/* The defaults of the signature's attributes, through entries, so that they are imported like a node's. */
static status import_defaults(const Tensorflow__OpDef *sig, struct arena *arena, struct function_body *body) {
  Tensorflow__AttrEntry *entries = ARENA_ARRAY(arena, Tensorflow__AttrEntry, sig->n_attr + 1);
  const Tensorflow__AttrEntry **list = ARENA_ARRAY(arena, const Tensorflow__AttrEntry *, sig->n_attr + 1);
  uint32_t count = 0;
  for (size_t i = 0; i < sig->n_attr; i++) {
    if (!sig->attr[i]->default_value)
      continue;
    tensorflow__attr_entry__init(&entries[count]);
    entries[count].key = sig->attr[i]->name;
    entries[count].value = sig->attr[i]->default_value;
    list[count] = &entries[count];
    count++;
  }
  body->default_count = count;
  return import_attrs(list, count, arena, &body->defaults);
}

static status import_body(const Tensorflow__FunctionDef *def, struct arena *arena, struct function_body *body) {
  if (def->n_node_def > LIMIT_NODES)
    return fail(RESOURCE_EXHAUSTED, "it has %zu nodes", def->n_node_def);
  struct function_node *nodes = ARENA_ARRAY(arena, struct function_node, def->n_node_def + 1);
  for (size_t i = 0; i < def->n_node_def; i++)
    TRY(import_body_node(def->node_def[i], arena, &nodes[i]));
  body->nodes = nodes;
  body->node_count = (uint32_t)def->n_node_def;
  TRY(import_defaults(def->signature, arena, body));
  return import_rets(def, arena, body);
}

static const char *import_attr_name(const char *name, struct arena *arena) { return *name ? arena_strdup(arena, name) : NULL; }

static const struct op_arg *import_args(Tensorflow__OpDef__ArgDef *const *args, size_t count, struct arena *arena) {
  struct op_arg *out = ARENA_ARRAY(arena, struct op_arg, count + 1);
  for (size_t i = 0; i < count; i++) {
    const Tensorflow__OpDef__ArgDef *a = args[i];
    out[i] = (struct op_arg){.name = arena_strdup(arena, a->name),
                             .dtype = dtype_is_valid(dtype_base(a->type)) ? (uint8_t)a->type : 0,
                             .type_attr = import_attr_name(a->type_attr, arena),
                             .number_attr = import_attr_name(a->number_attr, arena),
                             .list_attr = import_attr_name(a->type_list_attr, arena),
                             .is_ref = a->is_ref};
  }
  return out;
}

static void import_signature(const Tensorflow__OpDef *sig, struct arena *arena, struct function *f) {
  f->arg_count = (uint32_t)sig->n_input_arg;
  f->ret_count = (uint32_t)sig->n_output_arg;
  f->args = import_args(sig->input_arg, sig->n_input_arg, arena);
  f->rets = import_args(sig->output_arg, sig->n_output_arg, arena);
  f->is_stateful = sig->is_stateful;
}

/* What the function says of itself, beside its signature. */
static void import_function_attrs(const Tensorflow__FunctionDef *def, struct arena *arena, struct function *f) {
  for (size_t i = 0; i < def->n_attr; i++) {
    const char *name = def->attr[i]->key;
    const Tensorflow__AttrValue *v = def->attr[i]->value;
    if (v && v->value_case == TENSORFLOW__ATTR_VALUE__VALUE_B && strcmp(name, "_noinline") == 0)
      f->is_shared = v->b;
    if (!v || v->value_case != TENSORFLOW__ATTR_VALUE__VALUE_S)
      continue;
    const char *text = v->s.len ? arena_strndup(arena, (const char *)v->s.data, v->s.len) : NULL;
    if (strcmp(name, "api_implements") == 0)
      f->interface = text;
    else if (strcmp(name, "api_preferred_device") == 0)
      f->preferred_device = text;
    else if (strcmp(name, "backward_function_name") == 0)
      f->role = FUNCTION_FORWARD;
    else if (strcmp(name, "forward_function_name") == 0)
      f->role = FUNCTION_BACKWARD;
  }
}

status import_function(struct graph *graph, const Tensorflow__FunctionDef *def) {
  struct arena *arena = graph->arena;
  if (!def->signature || !*def->signature->name)
    return fail(INVALID_ARGUMENT, "function %u of the library has no name", graph->functions.count);
  struct function f = {.name = arena_strdup(arena, def->signature->name)};
  struct function_body *body = ARENA_NEW(arena, struct function_body);
  import_signature(def->signature, arena, &f);
  status s = import_body(def, arena, body);
  if (s != OK)
    return status_prefix(s, "function '%s': ", f.name);
  f.body = body;
  import_function_attrs(def, arena, &f);
  if (!map_insert(&graph->function_names, f.name, graph->functions.count))
    return fail(INVALID_ARGUMENT, "function '%s': two functions have this name", f.name);
  vec_push(&graph->functions, f);
  return OK;
}
