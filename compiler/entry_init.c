/* entry_init.c: a session that TensorFlow manages (MonitoredSession, an estimator, a Supervisor) runs several operations before the
 * first step: init_op, local_init_op, the initialisers of tables, hooks that initialise iterators. Here they are one entry. */
#include <stdlib.h>
#include <string.h>

#include "compiler/entries.h"
#include "compiler/entry_defaults.h"

/* What is there to be initialised, and what the entry does already. */
struct starts {
  struct build *build;
  const struct graph *graph;
  bool *given;   /* per node: comes from a feed or a checkpoint, or needs what does */
  bool *reached; /* per node: the entry runs it */
};

static bool is_op(const struct node *node, const char *const *ops, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(node->op, ops[i]) == 0)
      return true;
  return false;
}
#define IS_OP(node, ...) is_op(node, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static bool is_assignment(const struct node *node) { return IS_OP(node, "Assign", "AssignVariableOp"); }
static bool is_table_start(const struct node *node) {
  return IS_OP(node, "InitializeTable", "InitializeTableV2", "InitializeTableFromTextFile", "InitializeTableFromTextFileV2",
               "LookupTableImport", "LookupTableImportV2");
}
static bool is_iterator_start(const struct node *node) { return IS_OP(node, "MakeIterator"); }
bool node_gives_first_value(const struct node *node) { return is_assignment(node) || is_table_start(node) || is_iterator_start(node); }

static bool *given_mark(const struct graph *graph) {
  bool *starts = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *starts);
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    starts[i] = IS_OP(&graph->nodes.items[i], "Placeholder", "PlaceholderV2", "RestoreV2", "Restore", "RestoreSlice");
  bool *given = descendants_mark(graph, starts);
  free(starts);
  return given;
}

static void target_add(struct starts *s, uint32_t node, struct entry_spec *spec) {
  if (node == NO_NODE || s->reached[node] || s->given[node])
    return;
  vec_push(&spec->targets, s->graph->nodes.items[node].name);
  free(s->reached);
  s->reached = entry_mark_needed(s->graph, spec);
}

static void collection_run(struct starts *s, const char *collection, struct entry_spec *spec) {
  for (uint32_t i = 0; i < s->build->model.collections.count; i++) {
    const struct attr *attr = &s->build->model.collections.items[i];
    for (uint32_t k = 0; k < attr->value.list.count && !strcmp(attr->name, collection); k++) {
      const char *item = attr->value.list.items[k].s.data;
      target_add(s, graph_find(s->graph, arena_strndup(&s->build->arena, item, strcspn(item, ":"))), spec);
    }
  }
}

/* ---- tables and iterators ---- */

/* What no other operation gathers, or the operations that the graph gathers them in would be better. */
static void tables_run(struct starts *s, struct entry_spec *spec) {
  for (uint32_t i = 0; i < s->graph->nodes.count; i++)
    if (is_table_start(&s->graph->nodes.items[i]))
      target_add(s, i, spec);
}

static bool is_only_initialiser(const struct graph *graph, uint32_t node) {
  struct edge iterator = graph->nodes.items[node].inputs[1];
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *other = &graph->nodes.items[i];
    if (i != node && is_iterator_start(other) && other->inputs[1].node == iterator.node)
      return false;
  }
  return true;
}

static void iterators_run(struct starts *s, struct entry_spec *spec) {
  for (uint32_t i = 0; i < s->graph->nodes.count; i++)
    if (is_iterator_start(&s->graph->nodes.items[i]) && is_only_initialiser(s->graph, i))
      target_add(s, i, spec);
}

/* ---- variables ---- */

static bool is_variable(const struct node *node) { return IS_OP(node, "Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable"); }

/* Those that the entry assigns already. */
static bool *assigned_mark(const struct starts *s) {
  bool *assigned = vec_grow(NULL, &(uint32_t){0}, s->graph->nodes.count + 1, sizeof *assigned);
  memset(assigned, 0, s->graph->nodes.count + 1);
  for (uint32_t i = 0; i < s->graph->nodes.count; i++)
    if (s->reached[i] && is_assignment(&s->graph->nodes.items[i]))
      assigned[s->graph->nodes.items[i].inputs[0].node] = true;
  return assigned;
}

/* TensorFlow names the first assignment of "w" "w/Assign". */
static uint32_t initialiser_of(struct starts *s, uint32_t variable) {
  uint32_t node = graph_find(s->graph, arena_printf(&s->build->arena, "%s/Assign", s->graph->nodes.items[variable].name));
  bool fits = node != NO_NODE && is_assignment(&s->graph->nodes.items[node]) && s->graph->nodes.items[node].inputs[0].node == variable;
  return fits && !s->given[node] ? node : NO_NODE;
}

/* Many at once: what they reach does not matter to each other. */
static void variables_run(struct starts *s, struct entry_spec *spec) {
  bool *assigned = assigned_mark(s);
  for (uint32_t i = 0; i < s->graph->nodes.count; i++) {
    if (!is_variable(&s->graph->nodes.items[i]) || assigned[i])
      continue;
    uint32_t node = initialiser_of(s, i);
    if (node != NO_NODE)
      vec_push(&spec->targets, s->graph->nodes.items[node].name);
  }
  free(assigned);
}

/* ---- the entries ---- */

static const struct entry_spec *named_init(struct build *build) {
  static const char *const names[] = {"init", "init_op", "init_all"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (entry_find(build, names[i]))
      return entry_find(build, names[i]);
  return NULL;
}

static void local_run(struct starts *s, struct entry_spec *spec) {
  collection_run(s, "local_init_op", spec);
  collection_run(s, "table_initializer", spec);
  tables_run(s, spec);
  iterators_run(s, spec);
}

/* Each replica has tables, iterators and local variables of its own, which the chief's `init` does not reach. */
static void local_init_add(struct build *build, bool *given) {
  struct entry_spec spec = {.name = "local_init"};
  struct starts s = {.build = build, .graph = build->model.graph, .given = given};
  if (!build_replicated(build) || entry_find(build, spec.name))
    return;
  s.reached = entry_mark_needed(s.graph, &spec);
  local_run(&s, &spec);
  free(s.reached);
  if (spec.targets.count)
    vec_push(&build->specs, spec);
}

static bool lists_are_equal(const char *const *a, uint32_t a_count, const char *const *b, uint32_t b_count) {
  bool equal = a_count == b_count;
  for (uint32_t i = 0; i < a_count && equal; i++)
    equal = strcmp(a[i], b[i]) == 0;
  return equal;
}

/* What would be the same entry under two names is compiled once. */
static void twin_note(struct build *build, const struct entry_spec *init) {
  for (uint32_t i = 0; i < build->specs.count; i++) {
    struct entry_spec *other = &build->specs.items[i];
    if (!strcmp(other->name, init->name) || other->feeds.count ||
        !lists_are_equal(other->fetches.items, other->fetches.count, init->fetches.items, init->fetches.count) ||
        !lists_are_equal(other->targets.items, other->targets.count, init->targets.items, init->targets.count))
      continue;
    vec_push(&build->aliases, (struct entry_alias){other->name, init->name});
    entry_spec_deinit(other);
    memmove(other, other + 1, (--build->specs.count - i) * sizeof *other);
    return;
  }
}

void entry_init_complete(struct build *build) {
  const struct entry_spec *named = named_init(build);
  struct entry_spec init = {.name = "init"};
  struct starts s = {.build = build, .graph = build->model.graph, .given = given_mark(build->model.graph)};
  if (!named && graph_find(s.graph, "init") != NO_NODE)
    vec_push(&init.targets, "init");
  for (uint32_t i = 0; named && i < named->targets.count; i++)
    vec_push(&init.targets, named->targets.items[i]);
  for (uint32_t i = 0; named && i < named->fetches.count; i++)
    entry_add_fetch(&init, named->fetches.items[i], named->fetch_keys.items[i]);
  s.reached = entry_mark_needed(s.graph, &init);
  local_run(&s, &init);
  variables_run(&s, &init);
  free(s.reached);
  struct entry_spec *own = entry_find(build, "init");
  if (own)
    entry_feed_placeholders(s.graph, &init);
  if (own) {
    entry_spec_deinit(own);
    *own = init;
  } else if (init.targets.count + init.fetches.count) {
    entry_feed_placeholders(s.graph, &init);
    twin_note(build, &init);
    vec_push(&build->specs, init);
    memmove(build->specs.items + 1, build->specs.items, (build->specs.count - 1) * sizeof init); /* it runs first */
    build->specs.items[0] = init;
  } else {
    entry_spec_deinit(&init);
  }
  local_init_add(build, s.given);
  free(s.given);
}
