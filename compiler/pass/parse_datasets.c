/* parse_datasets.c: a dataset that parses its elements is a map of ParseExampleV2. The functions of such maps are added
 * to the library: they take what the dataset gives and the defaults of its dense features, and give the features in the
 * order of their names, a sparse one as the variant that SerializeSparse makes, a ragged one as that of RaggedTensorToVariant. */
#include <stdlib.h>
#include <string.h>

#include "compiler/pass/pass.h"
#include "ir/graph/function.h"
#include "ir/graph/registry.h"

struct parse_dataset {
  struct graph *graph;
  struct arena *arena;
  const struct attr *attrs; /* of the node */
  uint32_t attr_count;
  uint32_t dense, sparse, ragged;
};

static bool is_parse_dataset(const char *op) {
  return strcmp(op, "ParseExampleDataset") == 0 || strcmp(op, "ParseExampleDatasetV2") == 0 ||
         strcmp(op, "ExperimentalParseExampleDataset") == 0;
}

static const struct attr_value *list_of(const struct parse_dataset *p, const char *name) {
  static const struct attr_value none = {.kind = ATTR_LIST};
  const struct attr_value *v = attr_find(p->attrs, p->attr_count, name);
  return v && v->kind == ATTR_LIST ? v : &none;
}

static struct attr attr_of(const char *name, struct attr_value value) { return (struct attr){name, value}; }

/* ---- the function ---- */

static struct function_node body_node(const struct parse_dataset *p, const char *name, const char *op, const struct attr *attrs,
                                      uint32_t attr_count, const char *const *inputs, uint32_t input_count) {
  struct function_node n = {.name = name, .op = op, .device = "", .attr_count = attr_count, .input_count = input_count};
  n.attrs = arena_copy(p->arena, attrs, sizeof *attrs * attr_count);
  n.inputs = arena_copy(p->arena, inputs, sizeof *inputs * input_count);
  return n;
}

/* A vector of the strings that a list attribute has. */
static struct function_node keys_node(const struct parse_dataset *p, const char *name, const char *from) {
  const struct attr_value *keys = list_of(p, from);
  struct constant *value = ARENA_NEW(p->arena, struct constant);
  struct string_view *views = ARENA_ARRAY(p->arena, struct string_view, keys->list.count + 1);
  for (uint32_t i = 0; i < keys->list.count; i++)
    views[i] = (struct string_view){keys->list.items[i].s.data, keys->list.items[i].s.size};
  *value = (struct constant){.dtype = DTYPE_STRING, .rank = 1, .dims = {keys->list.count}, .count = keys->list.count, .data = views};
  const struct attr attrs[] = {attr_of_type("dtype", DTYPE_STRING),
                               attr_of("value", (struct attr_value){.kind = ATTR_TENSOR, .tensor = value})};
  return body_node(p, name, "Const", attrs, 2, NULL, 0);
}

static struct function_node parse_node(const struct parse_dataset *p) {
  const char **inputs = ARENA_ARRAY(p->arena, const char *, 5 + p->dense);
  static const char *const first[] = {"serialized", "names:output:0", "sparse_keys:output:0", "dense_keys:output:0",
                                      "ragged_keys:output:0"};
  memcpy(inputs, first, sizeof first);
  for (uint32_t i = 0; i < p->dense; i++)
    inputs[5 + i] = arena_printf(p->arena, "d%u", i);
  const struct attr attrs[] = {attr_of("Tdense", *list_of(p, "Tdense")),
                               attr_of("dense_shapes", *list_of(p, "dense_shapes")),
                               attr_of_int("num_sparse", p->sparse),
                               attr_of("ragged_split_types", *list_of(p, "ragged_split_types")),
                               attr_of("ragged_value_types", *list_of(p, "ragged_value_types")),
                               attr_of("sparse_types", *list_of(p, "sparse_types"))};
  return body_node(p, "parse", "ParseExampleV2", attrs, sizeof attrs / sizeof *attrs, inputs, 5 + p->dense);
}

static struct function_node serialize_node(const struct parse_dataset *p, uint32_t i) {
  const char *inputs[] = {arena_printf(p->arena, "parse:sparse_indices:%u", i), arena_printf(p->arena, "parse:sparse_values:%u", i),
                          arena_printf(p->arena, "parse:sparse_shapes:%u", i)};
  const struct attr attrs[] = {attr_of_type("T", (int)list_of(p, "sparse_types")->list.items[i].i),
                               attr_of_type("out_type", DTYPE_VARIANT)};
  return body_node(p, arena_printf(p->arena, "s%u", i), "SerializeSparse", attrs, 2, inputs, 3);
}

static struct function_node box_ragged_node(const struct parse_dataset *p, uint32_t i) {
  const char *inputs[] = {arena_printf(p->arena, "parse:ragged_row_splits:%u", i), arena_printf(p->arena, "parse:ragged_values:%u", i)};
  const struct attr attrs[] = {attr_of_int("RAGGED_RANK", 1),
                               attr_of_type("Tsplits", (int)list_of(p, "ragged_split_types")->list.items[i].i),
                               attr_of_type("Tvalues", (int)list_of(p, "ragged_value_types")->list.items[i].i),
                               attr_of("batched_input", (struct attr_value){.kind = ATTR_BOOL})};
  return body_node(p, arena_printf(p->arena, "r%u", i), "RaggedTensorToVariant", attrs, sizeof attrs / sizeof *attrs, inputs, 2);
}

struct result {
  const char *key, *source;
};
static int by_key(const void *a, const void *b) { return strcmp(((const struct result *)a)->key, ((const struct result *)b)->key); }

/* Appends a result for each key of that list: its source, a text around its number. */
static void add_results(const struct parse_dataset *p, const char *keys, const char *before, const char *behind, struct result **at) {
  const struct attr_value *list = list_of(p, keys);
  for (uint32_t i = 0; i < list->list.count; i++)
    *(*at)++ = (struct result){list->list.items[i].s.data, arena_printf(p->arena, "%s%u%s", before, i, behind)};
}

/* The features in the order of their names. */
static const char *const *sorted_sources(const struct parse_dataset *p) {
  uint32_t count = p->dense + p->sparse + p->ragged;
  struct result *results = ARENA_ARRAY(p->arena, struct result, count + 1), *end = results;
  add_results(p, "dense_keys", "parse:dense_values:", "", &end);
  add_results(p, "sparse_keys", "s", ":serialized_sparse:0", &end);
  add_results(p, "ragged_keys", "r", ":encoded_ragged:0", &end);
  qsort(results, count, sizeof *results, by_key);
  const char **sources = ARENA_ARRAY(p->arena, const char *, count + 1);
  for (uint32_t i = 0; i < count; i++)
    sources[i] = results[i].source;
  return sources;
}

static const struct op_arg *typed_args(const struct parse_dataset *p, const char *first, const char *prefix,
                                       const struct attr_value *types) {
  uint32_t before = first != NULL, count = types->list.count;
  struct op_arg *args = ARENA_ARRAY(p->arena, struct op_arg, count + 2);
  if (first)
    args[0] = (struct op_arg){.name = first, .dtype = DTYPE_STRING};
  for (uint32_t i = 0; i < count; i++)
    args[before + i] = (struct op_arg){.name = arena_printf(p->arena, "%s%u", prefix, i), .dtype = (uint8_t)types->list.items[i].i};
  return args;
}

static const char *add_function(const struct parse_dataset *p) {
  struct graph *g = p->graph;
  struct function_body *body = ARENA_NEW(p->arena, struct function_body);
  struct function_node *nodes = ARENA_ARRAY(p->arena, struct function_node, 5 + p->sparse + p->ragged);
  nodes[0] = keys_node(p, "names", "");
  nodes[1] = keys_node(p, "sparse_keys", "sparse_keys");
  nodes[2] = keys_node(p, "dense_keys", "dense_keys");
  nodes[3] = keys_node(p, "ragged_keys", "ragged_keys");
  nodes[4] = parse_node(p);
  for (uint32_t i = 0; i < p->sparse; i++)
    nodes[5 + i] = serialize_node(p, i);
  for (uint32_t i = 0; i < p->ragged; i++)
    nodes[5 + p->sparse + i] = box_ragged_node(p, i);
  *body = (struct function_body){.nodes = nodes, .node_count = 5 + p->sparse + p->ragged, .ret_sources = sorted_sources(p)};
  struct function f = {.name = arena_printf(p->arena, "__parse_example_%u", g->functions.count), .body = body};
  f.args = typed_args(p, "serialized", "d", list_of(p, "Tdense"));
  f.arg_count = 1 + p->dense;
  f.rets = typed_args(p, NULL, "o", list_of(p, "output_types"));
  f.ret_count = p->dense + p->sparse + p->ragged;
  map_insert(&g->function_names, f.name, g->functions.count);
  vec_push(&g->functions, f);
  return f.name;
}

/* ---- the node ---- */

/* Nothing has checked the node yet: `count` items, all of that kind. */
static bool is_list_of(const struct parse_dataset *p, const char *name, enum attr_kind kind, uint32_t count) {
  const struct attr_value *v = list_of(p, name);
  bool good = v->list.count == count;
  for (uint32_t i = 0; good && i < count; i++)
    good = v->list.items[i].kind == kind;
  return good;
}

/* Whether the attributes agree with each other. */
static bool parse_dataset_read(struct graph *graph, const struct attr *attrs, uint32_t attr_count, struct parse_dataset *p) {
  *p = (struct parse_dataset){.graph = graph, .arena = graph->arena, .attrs = attrs, .attr_count = attr_count};
  p->dense = list_of(p, "dense_keys")->list.count;
  p->sparse = list_of(p, "sparse_keys")->list.count;
  p->ragged = list_of(p, "ragged_keys")->list.count;
  return is_list_of(p, "dense_keys", ATTR_STRING, p->dense) && is_list_of(p, "Tdense", ATTR_TYPE, p->dense) &&
         is_list_of(p, "dense_shapes", ATTR_SHAPE, p->dense) && is_list_of(p, "sparse_keys", ATTR_STRING, p->sparse) &&
         is_list_of(p, "sparse_types", ATTR_TYPE, p->sparse) && is_list_of(p, "ragged_keys", ATTR_STRING, p->ragged) &&
         is_list_of(p, "ragged_value_types", ATTR_TYPE, p->ragged) && is_list_of(p, "ragged_split_types", ATTR_TYPE, p->ragged) &&
         is_list_of(p, "output_types", ATTR_TYPE, p->dense + p->sparse + p->ragged);
}

/* The attributes of the map, sorted. */
static const struct attr *map_attrs(const struct parse_dataset *p, uint32_t *count) {
  struct attr_func *func = ARENA_NEW(p->arena, struct attr_func);
  const struct attr_value *sloppy = attr_find(p->attrs, p->attr_count, "sloppy"),
                          *given = attr_find(p->attrs, p->attr_count, "deterministic");
  struct attr_value order = {.kind = ATTR_STRING, .s = {"default", 7}};
  func->name = add_function(p);
  if (given)
    order = *given;
  else if (sloppy && sloppy->i)
    order = (struct attr_value){.kind = ATTR_STRING, .s = {"false", 5}};
  const struct attr attrs[] = {attr_of("Targuments", *list_of(p, "Tdense")), attr_of("deterministic", order),
                               attr_of("f", (struct attr_value){.kind = ATTR_FUNC, .func = func}),
                               attr_of("output_shapes", *list_of(p, "output_shapes")),
                               attr_of("output_types", *list_of(p, "output_types"))};
  *count = sizeof attrs / sizeof *attrs;
  return arena_copy(p->arena, attrs, sizeof attrs);
}

/* dataset, number of calls, defaults ... : the number comes last. */
static void rewrite_node(struct graph *g, struct node *n) {
  struct parse_dataset p;
  if (!parse_dataset_read(g, n->attrs, n->attr_count, &p) || n->input_count != 2 + p.dense)
    return;
  struct edge *inputs = ARENA_ARRAY(g->arena, struct edge, n->input_count);
  inputs[0] = n->inputs[0];
  memcpy(inputs + 1, n->inputs + 2, sizeof *inputs * p.dense);
  inputs[1 + p.dense] = n->inputs[1];
  n->attrs = map_attrs(&p, &n->attr_count);
  n->inputs = inputs;
  n->op = "ParallelMapDatasetV2";
}

static void rewrite_body_node(struct graph *g, struct function_node *n) {
  struct parse_dataset p;
  if (!parse_dataset_read(g, n->attrs, n->attr_count, &p) || n->input_count < 2 + p.dense)
    return;
  const char **inputs = ARENA_ARRAY(g->arena, const char *, n->input_count);
  memcpy(inputs, n->inputs, sizeof *inputs * n->input_count); /* control inputs stay behind */
  memcpy(inputs + 1, n->inputs + 2, sizeof *inputs * p.dense);
  inputs[1 + p.dense] = n->inputs[1];
  n->attrs = map_attrs(&p, &n->attr_count);
  n->inputs = inputs;
  n->op = "ParallelMapDatasetV2";
}

static void rewrite_body(struct graph *g, uint32_t function) {
  const struct function_body *old = g->functions.items[function].body;
  struct function_node *nodes = NULL;
  for (uint32_t i = 0; i < old->node_count; i++) {
    if (!is_parse_dataset(old->nodes[i].op))
      continue;
    if (!nodes)
      nodes = arena_copy(g->arena, old->nodes, sizeof *nodes * old->node_count);
    rewrite_body_node(g, &nodes[i]);
  }
  if (!nodes)
    return;
  struct function_body *body = ARENA_NEW(g->arena, struct function_body);
  *body = *old;
  body->nodes = nodes;
  g->functions.items[function].body = body;
}

status pass_datasets(struct build *b) {
  struct graph *g = b->model.graph;
  uint32_t functions = g->functions.count; /* those that are added have none */
  for (uint32_t i = 0; i < g->nodes.count; i++)
    if (is_parse_dataset(g->nodes.items[i].op))
      rewrite_node(g, &g->nodes.items[i]);
  for (uint32_t i = 0; i < functions; i++)
    rewrite_body(g, i);
  return OK;
}
