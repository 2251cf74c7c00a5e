/* restore_tables.c: the tables of a SavedModel that can be changed have their contents in its checkpoint. What its loader would
 * restore becomes nodes of the graph, imports of constants, and the entry `init` runs them. */
#include <string.h>

#include "compiler/pass/pass.h"
#include "compiler/pass/restore_keys.h"
#include "compiler/read/read.h"
#include "ir/graph/registry.h"

static uint32_t add_node(struct build *b, const char *name, const char *op, struct attr first, struct attr second) {
  struct graph *g = b->model.graph;
  struct attr *attrs = ARENA_ARRAY(&b->arena, struct attr, 2);
  attrs[0] = first;
  attrs[1] = second;
  map_insert(&g->names, name, g->nodes.count);
  vec_push(&g->nodes, (struct node){.name = name, .op = op, .device = "", .attrs = attrs, .attr_count = 2});
  return g->nodes.count - 1;
}

static status add_constant(struct build *b, struct bundle *bundle, const char *name, const char *key, uint32_t *out, enum dtype *dtype) {
  struct constant *value = ARENA_NEW(&b->arena, struct constant);
  TRY(bundle_read(bundle, key, value));
  *dtype = value->dtype;
  *out = add_node(b, name, "Const", attr_of_type("dtype", value->dtype),
                  (struct attr){.name = "value", .value = {.kind = ATTR_TENSOR, .tensor = value}});
  return OK;
}

/* The name of the import. */
static status add_import(struct build *b, struct bundle *bundle, const struct restore_table *table, const char **out) {
  struct graph *g = b->model.graph;
  const char *of = g->nodes.items[table->handle.node].name;
  uint32_t keys, values;
  enum dtype key_type, value_type;
  *out = arena_printf(&b->arena, "%s/restore", of);
  if (graph_find(g, *out) != NO_NODE)
    return fail(INVALID_ARGUMENT, "%s: the table is restored twice", of);
  TRY(add_constant(b, bundle, arena_printf(&b->arena, "%s/restore/keys", of), table->keys, &keys, &key_type));
  TRY(add_constant(b, bundle, arena_printf(&b->arena, "%s/restore/values", of), table->values, &values, &value_type));
  struct edge *inputs = ARENA_ARRAY(&b->arena, struct edge, 3);
  inputs[0] = table->handle;
  inputs[1] = (struct edge){keys, 0};
  inputs[2] = (struct edge){values, 0};
  uint32_t import = add_node(b, *out, "LookupTableImportV2", attr_of_type("Tin", key_type), attr_of_type("Tout", value_type));
  g->nodes.items[import].inputs = inputs;
  g->nodes.items[import].input_count = 3;
  return OK;
}

static struct entry_spec *init_spec(struct build *b) {
  for (uint32_t i = 0; i < b->specs.count; i++)
    if (strcmp(b->specs.items[i].name, "init") == 0)
      return &b->specs.items[i];
  b->init_is_loaders = true;
  vec_push(&b->specs, (struct entry_spec){.name = "init"});
  return &vec_last(&b->specs);
}

status pass_tables(struct build *b) {
  struct restore_tables tables = {0};
  struct bundle *bundle;
  if (!b->model.variables_prefix)
    return OK;
  status s = restore_tables_find(&b->model, &b->arena, &tables);
  if (s == OK && tables.count)
    s = bundle_open(b->model.variables_prefix, &b->arena, &bundle);
  for (uint32_t i = 0; i < tables.count && s == OK; i++) {
    const char *import;
    s = add_import(b, bundle, &tables.items[i], &import);
    if (s == OK)
      vec_push(&init_spec(b)->targets, import);
  }
  bool any = tables.count > 0;
  vec_free(&tables);
  return s == OK && any ? registry_check(b->model.graph) : s;
}
