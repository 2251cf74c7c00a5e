/* entry_defaults.c: entries of a build without --entry (contract, section 1): signatures, functions of TensorFlow 2's objects,
 * collections of training, operations with the usual names, the step of the only optimizer, else what nothing consumes. */
#include "compiler/entry_defaults.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/entries.h"
#include "compiler/entry_runners.h"

static int signature_compare(const void *a, const void *b) {
  return strcmp((*(const struct signature *const *)a)->name, (*(const struct signature *const *)b)->name);
}

static int tensor_compare(const void *a, const void *b) {
  return strcmp((*(const struct signature_tensor *const *)a)->key, (*(const struct signature_tensor *const *)b)->key);
}

typedef VEC(const struct signature_tensor *) tensor_list;

/* Protobuf leaves the order of a map open: keys are sorted, so that the same model is built in the same way. */
static void ports_add(const struct signature_tensor *items, uint32_t count, struct entry_spec *spec, bool feeds) {
  tensor_list sorted = {0};
  for (uint32_t i = 0; i < count; i++)
    vec_push(&sorted, &items[i]);
  if (count)
    qsort(sorted.items, count, sizeof *sorted.items, tensor_compare);
  for (uint32_t i = 0; i < count; i++) {
    if (feeds)
      entry_add_feed(spec, sorted.items[i]->tensor, sorted.items[i]->key);
    else
      entry_add_fetch(spec, sorted.items[i]->tensor, sorted.items[i]->key);
  }
  vec_free(&sorted);
}

static void signatures_add(struct build *build) {
  VEC(const struct signature *) sorted = {0};
  for (uint32_t i = 0; i < build->model.signatures.count; i++)
    vec_push(&sorted, &build->model.signatures.items[i]);
  if (sorted.count)
    qsort(sorted.items, sorted.count, sizeof *sorted.items, signature_compare);
  for (uint32_t i = 0; i < sorted.count; i++) {
    const struct signature *signature = sorted.items[i];
    struct entry_spec spec = {.name = signature->name};
    ports_add(signature->inputs.items, signature->inputs.count, &spec, true);
    ports_add(signature->outputs.items, signature->outputs.count, &spec, false);
    if (!entry_find(build, spec.name))
      vec_push(&build->specs, spec);
  }
  vec_free(&sorted);
}

bool *entry_mark_needed(const struct graph *graph, const struct entry_spec *spec) {
  VEC(uint32_t) seeds = {0};
  struct edge edge;
  for (uint32_t i = 0; i < spec->fetches.count; i++)
    if (graph_find_output(graph, spec->fetches.items[i], &edge) == OK)
      vec_push(&seeds, edge.node);
  for (uint32_t i = 0; i < spec->targets.count; i++)
    if (graph_find(graph, spec->targets.items[i]) != NO_NODE)
      vec_push(&seeds, graph_find(graph, spec->targets.items[i]));
  bool *needed = ancestors_mark(graph, seeds.items, seeds.count);
  vec_free(&seeds);
  return needed;
}

bool *entry_mark_fed(const struct graph *graph, const struct entry_spec *spec) {
  bool *starts = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *starts);
  struct edge edge;
  memset(starts, 0, graph->nodes.count + 1);
  for (uint32_t i = 0; i < spec->feeds.count; i++)
    if (graph_find_output(graph, spec->feeds.items[i], &edge) == OK)
      starts[edge.node] = true;
  bool *fed = descendants_mark(graph, starts);
  free(starts);
  return fed;
}

void entry_feed_placeholders(const struct graph *graph, struct entry_spec *spec) {
  bool *needed = entry_mark_needed(graph, spec);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    if (needed[i] && (!strcmp(node->op, "Placeholder") || !strcmp(node->op, "PlaceholderV2"))) {
      entry_add_feed(spec, node->name, node->name);
    }
  }
  free(needed);
}

static bool is_taken(struct build *build, const char *name) {
  for (uint32_t i = 0; i < build->aliases.count; i++)
    if (!strcmp(build->aliases.items[i].name, name))
      return true;
  return entry_find(build, name) != NULL;
}

/* A function of the root object; several traces of one have numbers. One that a signature runs is another name of that. */
static void method_add(struct build *build, const struct method *method) {
  if (method->signature && !is_taken(build, method->name))
    vec_push(&build->aliases, (struct entry_alias){method->name, method->signature});
  if (!method->node)
    return;
  const struct captures *c = &build->model.captures.items[method->function];
  uint32_t call = graph_find(build->model.graph, method->node);
  const char *name = method->name;
  for (uint32_t i = 1; is_taken(build, name); i++)
    name = arena_printf(&build->arena, "%s_%u", method->name, i);
  struct entry_spec spec = {.name = name, .is_guess = true};
  for (uint32_t i = 0; i < c->input_count; i++)
    entry_add_feed(&spec, build->model.graph->nodes.items[build->model.graph->nodes.items[call].inputs[i].node].name, c->inputs[i].key);
  for (uint32_t i = 0; i < c->output_count; i++)
    entry_add_fetch(&spec, arena_printf(&build->arena, "%s:%u", method->node, i), c->outputs[i].key);
  if (!c->output_count)
    vec_push(&spec.targets, method->node);
  vec_push(&build->specs, spec);
}

/* A collection holds names: of tensors, with a port, or of operations; some are there twice. */
static void collection_items_add(const struct build *build, const char *collection, struct entry_spec *spec) {
  for (uint32_t i = 0; i < build->model.collections.count; i++) {
    const struct attr *attr = &build->model.collections.items[i];
    for (uint32_t k = 0; k < attr->value.list.count && !strcmp(attr->name, collection); k++) {
      const char *item = attr->value.list.items[k].s.data;
      bool is_tensor = strchr(item, ':') != NULL, there = false;
      for (uint32_t n = 0; n < (is_tensor ? spec->fetches.count : spec->targets.count); n++)
        there = there || !strcmp(is_tensor ? spec->fetches.items[n] : spec->targets.items[n], item);
      if (is_tensor && !there)
        entry_add_fetch(spec, item, item);
      else if (!there)
        vec_push(&spec->targets, item);
    }
  }
}

void entry_loss_fetch(struct build *build, struct entry_spec *spec) {
  struct edge edge;
  VEC(uint32_t) seeds = {0};
  for (uint32_t i = 0; i < spec->targets.count; i++)
    if (graph_find(build->model.graph, spec->targets.items[i]) != NO_NODE)
      vec_push(&seeds, graph_find(build->model.graph, spec->targets.items[i]));
  for (uint32_t i = 0; i < spec->fetches.count; i++)
    if (graph_find_output(build->model.graph, spec->fetches.items[i], &edge) == OK)
      vec_push(&seeds, edge.node);
  const char *losses[TRAIN_LOSSES_MAX];
  uint32_t count = train_losses_find(build, seeds.items, seeds.count, losses);
  for (uint32_t k = 0; k < count; k++) {
    bool there = false;
    for (uint32_t i = 0; i < spec->fetches.count; i++)
      there = there || (graph_find_output(build->model.graph, spec->fetches.items[i], &edge) == OK && edge.port == 0 &&
                        !strcmp(build->model.graph->nodes.items[edge.node].name, losses[k]));
    if (!there)
      entry_add_fetch(spec, losses[k], count == 1 ? "loss" : losses[k]);
  }
  vec_free(&seeds);
}

static bool is_training(const char *name) { return strncmp(name, "train", 5) == 0; }

static void collection_add(struct build *build, const char *name) {
  struct entry_spec spec = {.name = name};
  collection_items_add(build, name, &spec);
  if (spec.fetches.count + spec.targets.count == 0 || entry_find(build, name))
    return;
  if (is_training(name))
    entry_loss_fetch(build, &spec);
  entry_feed_placeholders(build->model.graph, &spec);
  vec_push(&build->specs, spec);
}

static void operation_add(struct build *build, const char *entry, const char *operation) {
  if (graph_find(build->model.graph, operation) == NO_NODE)
    return;
  struct entry_spec spec = {.name = entry};
  vec_push(&spec.targets, operation);
  if (is_training(entry))
    entry_loss_fetch(build, &spec);
  entry_feed_placeholders(build->model.graph, &spec);
  vec_push(&build->specs, spec);
}

/* The chief runs what a SavedModel's loader would run, such as the filling of tables, as the entry `init`. */
void entry_loaders_add(struct build *build) {
  const struct graph *graph = build->model.graph;
  const char *name = build->model.main_op;
  size_t length = name ? strcspn(name, ":") : 0;
  const char *bare = name ? arena_strndup(&build->arena, name, length) : NULL;
  uint32_t node = bare ? graph_find(graph, bare) : NO_NODE;
  if (node == NO_NODE || entry_find(build, "init") || graph->nodes.items[node].input_count + graph->nodes.items[node].control_count == 0)
    return;
  struct entry_spec spec = {.name = "init"};
  build->init_is_loaders = true;
  vec_push(&spec.targets, bare);
  vec_push(&build->specs, spec);
}

/* ---- all of them ---- */

/* The step of an optimizer: of the only one `train`, else called as its operation is. */
static void step_add(struct build *build, const char *operation, bool is_only) {
  const char *scope = strrchr(operation, '/');
  const char *name = is_only ? "train" : scope ? scope + 1 : operation;
  if (entry_find(build, name))
    return;
  struct entry_spec spec = {.name = name, .is_guess = true};
  vec_push(&spec.targets, operation);
  entry_loss_fetch(build, &spec);
  entry_feed_placeholders(build->model.graph, &spec);
  vec_push(&build->specs, spec);
}

static void operations_add(struct build *build) {
  static const char *const operations[] = {"init", "init_all", "train", "train_op", "train_step"};
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    operation_add(build, operations[i], operations[i]);
  bool named = build->specs.count > 0, trains = false;
  for (uint32_t i = 0; i < build->specs.count; i++)
    trains = trains || is_training(build->specs.items[i].name);
  uint32_t steps[TRAIN_STEPS_MAX], count = trains ? 0 : train_steps_find(build->model.graph, steps);
  for (uint32_t i = 0; i < count; i++)
    step_add(build, build->model.graph->nodes.items[steps[i]].name, count == 1);
  if (!trains)
    entry_main_add(build, named || count);
}

status entry_defaults_add(struct build *build) {
  static const char *const collections[] = {"init_op", "local_init_op", "ready_for_local_init_op", "ready_op", "train_op", "summary_op"};
  signatures_add(build);
  for (uint32_t i = 0; i < build->model.methods.count; i++)
    method_add(build, &build->model.methods.items[i]);
  for (size_t i = 0; i < sizeof collections / sizeof *collections; i++)
    collection_add(build, collections[i]);
  if (!build->specs.count)
    operations_add(build);
  entry_round_mend(build);
  if (!build->model.variables_prefix)
    entry_init_complete(build);
  uint32_t outputs = 0;
  for (uint32_t i = 0; i < build->specs.count; i++)
    outputs += build->specs.items[i].fetches.count + build->specs.items[i].targets.count;
  return outputs ? OK : fail(INVALID_ARGUMENT, "the graph has no output that could be fetched: name one with --entry");
}
