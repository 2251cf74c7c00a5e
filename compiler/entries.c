/* entries.c: reading --entry texts, and finding default entries in signatures, collections and names. */
#include "compiler/entries.h"

#include <stdlib.h>
#include <string.h>

typedef VEC(const char *) name_list;

/* ---- texts ---- */

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *text_trim(struct arena *arena, const char *from, const char *end) {
  while (from < end && is_blank(*from))
    from++;
  while (end > from && is_blank(end[-1]))
    end--;
  return arena_strndup(arena, from, (size_t)(end - from));
}

static bool list_has(const char *const *items, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(items[i], name))
      return true;
  return false;
}

/* "a, b:1": an empty list is fine, an empty name is not. */
static status list_parse(struct arena *arena, const char *from, const char *end, name_list *out) {
  if (!*text_trim(arena, from, end))
    return OK;
  for (;;) {
    const char *comma = memchr(from, ',', (size_t)(end - from));
    const char *name = text_trim(arena, from, comma ? comma : end);
    if (!*name)
      return fail(INVALID_ARGUMENT, "an empty name between commas");
    if (!list_has(out->items, out->count, name))
      vec_push(out, name);
    if (!comma)
      return OK;
    from = comma + 1;
  }
}

static status parts_parse(struct arena *arena, const char *rest, struct entry_spec *out) {
  const char *arrow = strstr(rest, "->"), *end = rest + strlen(rest);
  if (!arrow)
    return fail(INVALID_ARGUMENT, "'->' is missing: an entry is 'NAME: FEEDS -> FETCHES | TARGETS'");
  const char *bar = strchr(arrow, '|');
  name_list feeds = {0}, fetches = {0}, targets = {0};
  status result = list_parse(arena, rest, arrow, &feeds);
  if (result == OK)
    result = list_parse(arena, arrow + 2, bar ? bar : end, &fetches);
  if (result == OK && bar)
    result = list_parse(arena, bar + 1, end, &targets);
  for (uint32_t i = 0; i < feeds.count; i++) {
    vec_push(&out->feeds, feeds.items[i]);
    vec_push(&out->feed_keys, feeds.items[i]);
  }
  for (uint32_t i = 0; i < fetches.count; i++) {
    vec_push(&out->fetches, fetches.items[i]);
    vec_push(&out->fetch_keys, fetches.items[i]);
  }
  for (uint32_t i = 0; i < targets.count; i++)
    vec_push(&out->targets, targets.items[i]);
  vec_free(&feeds);
  vec_free(&fetches);
  vec_free(&targets);
  return result;
}

static bool name_is_plain(const char *name) {
  for (const char *p = name; *p; p++)
    if ((unsigned char)*p <= ' ' || *p == 0x7f || strchr(",|=>", *p))
      return false;
  return *name != 0;
}

status entry_parse(struct arena *arena, const char *text, struct entry_spec *out) {
  *out = (struct entry_spec){0};
  const char *colon = strchr(text, ':');
  if (!colon)
    return fail(INVALID_ARGUMENT, "--entry '%.200s': ':' is missing: an entry is 'NAME: FEEDS -> FETCHES | TARGETS'", text);
  out->name = text_trim(arena, text, colon);
  if (!name_is_plain(out->name))
    return fail(INVALID_ARGUMENT, "--entry '%.200s': '%.100s' is no name", text, out->name);
  status result = parts_parse(arena, colon + 1, out);
  return result == OK ? OK : status_prefix(result, "--entry '%.200s': ", text);
}

/* ---- checks ---- */

static status spec_check(const struct graph *graph, const struct entry_spec *spec) {
  struct edge edge;
  VEC(struct edge) fed = {0};
  status result = OK;
  for (uint32_t i = 0; i < spec->feeds.count && result == OK; i++) {
    result = graph_find_output(graph, spec->feeds.items[i], &edge);
    for (uint32_t k = 0; k < fed.count && result == OK; k++)
      if (fed.items[k].node == edge.node && fed.items[k].port == edge.port)
        result = fail(INVALID_ARGUMENT, "the tensor '%s' is fed twice", spec->feeds.items[i]);
    vec_push(&fed, edge);
  }
  vec_free(&fed);
  TRY(result);
  for (uint32_t i = 0; i < spec->fetches.count; i++)
    TRY(graph_find_output(graph, spec->fetches.items[i], &edge));
  for (uint32_t i = 0; i < spec->targets.count; i++)
    if (graph_find(graph, spec->targets.items[i]) == NO_NODE)
      return fail(NOT_FOUND, "the graph has no operation '%s'", spec->targets.items[i]);
  return OK;
}

static struct entry_spec *spec_find(struct build *build, const char *name) {
  for (uint32_t i = 0; i < build->specs.count; i++)
    if (!strcmp(build->specs.items[i].name, name))
      return &build->specs.items[i];
  return NULL;
}

static status specs_check(struct build *build) {
  for (uint32_t i = 0; i < build->specs.count; i++) {
    struct entry_spec *spec = &build->specs.items[i];
    if (spec_find(build, spec->name) != spec)
      return fail(INVALID_ARGUMENT, "two entries are named '%s'", spec->name);
    status result = spec_check(build->model.graph, spec);
    if (result != OK)
      return status_prefix(result, "entry '%s': ", spec->name);
  }
  return OK;
}

/* ---- defaults ---- */

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
    if (feeds) {
      vec_push(&spec->feeds, sorted.items[i]->tensor);
      vec_push(&spec->feed_keys, sorted.items[i]->key);
    } else {
      vec_push(&spec->fetches, sorted.items[i]->tensor);
      vec_push(&spec->fetch_keys, sorted.items[i]->key);
    }
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
    if (!spec_find(build, spec.name))
      vec_push(&build->specs, spec);
  }
  vec_free(&sorted);
}

/* Marks the nodes that `seeds` depend on, themselves included. */
static bool *ancestors_mark(const struct graph *graph, const uint32_t *seeds, uint32_t count) {
  bool *seen = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *seen);
  memset(seen, 0, graph->nodes.count + 1);
  VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < count; i++)
    vec_push(&stack, seeds[i]);
  while (stack.count) {
    uint32_t at = stack.items[--stack.count];
    const struct node *node = &graph->nodes.items[at];
    if (seen[at])
      continue;
    seen[at] = true;
    for (uint32_t i = 0; i < node->input_count; i++)
      vec_push(&stack, node->inputs[i].node);
    for (uint32_t i = 0; i < node->control_count; i++)
      vec_push(&stack, node->controls[i]);
  }
  vec_free(&stack);
  return seen;
}

/* Feeds the placeholders that the entry's fetches and targets depend on. Names that do not exist are found later. */
static void placeholders_feed(const struct graph *graph, struct entry_spec *spec) {
  VEC(uint32_t) seeds = {0};
  struct edge edge;
  for (uint32_t i = 0; i < spec->fetches.count; i++)
    if (graph_find_output(graph, spec->fetches.items[i], &edge) == OK)
      vec_push(&seeds, edge.node);
  for (uint32_t i = 0; i < spec->targets.count; i++)
    if (graph_find(graph, spec->targets.items[i]) != NO_NODE)
      vec_push(&seeds, graph_find(graph, spec->targets.items[i]));
  bool *needed = ancestors_mark(graph, seeds.items, seeds.count);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    if (needed[i] && (!strcmp(node->op, "Placeholder") || !strcmp(node->op, "PlaceholderV2"))) {
      vec_push(&spec->feeds, node->name);
      vec_push(&spec->feed_keys, node->name);
    }
  }
  free(needed);
  vec_free(&seeds);
}

/* A collection holds names: of tensors, with a port, or of operations. */
static void collection_add(struct build *build, const char *collection, const char *name) {
  struct entry_spec spec = {.name = name};
  for (uint32_t i = 0; i < build->model.collections.count; i++) {
    const struct attr *attr = &build->model.collections.items[i];
    if (strcmp(attr->name, collection))
      continue;
    for (uint32_t k = 0; k < attr->value.list.count; k++) {
      const char *item = attr->value.list.items[k].s.data;
      if (strchr(item, ':')) {
        vec_push(&spec.fetches, item);
        vec_push(&spec.fetch_keys, item);
      } else {
        vec_push(&spec.targets, item);
      }
    }
  }
  if (spec.fetches.count + spec.targets.count == 0 || spec_find(build, name))
    return;
  placeholders_feed(build->model.graph, &spec);
  vec_push(&build->specs, spec);
}

static void operation_add(struct build *build, const char *name) {
  if (graph_find(build->model.graph, name) == NO_NODE)
    return;
  struct entry_spec spec = {.name = name};
  vec_push(&spec.targets, name);
  placeholders_feed(build->model.graph, &spec);
  vec_push(&build->specs, spec);
}

/* A second entry of the same feeds, fetches and targets. */
static void spec_copy(struct build *build, const struct entry_spec *spec, const char *name) {
  struct entry_spec copy = {.name = name};
  for (uint32_t i = 0; i < spec->feeds.count; i++) {
    vec_push(&copy.feeds, spec->feeds.items[i]);
    vec_push(&copy.feed_keys, spec->feed_keys.items[i]);
  }
  for (uint32_t i = 0; i < spec->fetches.count; i++) {
    vec_push(&copy.fetches, spec->fetches.items[i]);
    vec_push(&copy.fetch_keys, spec->fetch_keys.items[i]);
  }
  for (uint32_t i = 0; i < spec->targets.count; i++)
    vec_push(&copy.targets, spec->targets.items[i]);
  vec_push(&build->specs, copy);
}

/* The chief runs the entry `init` before its first phase: what initialises under another name goes by that one too. */
static void init_alias(struct build *build) {
  static const char *const names[] = {"init_op", "init_all"};
  for (size_t i = 0; i < sizeof names / sizeof *names && !spec_find(build, "init"); i++) {
    const struct entry_spec *spec = spec_find(build, names[i]);
    if (spec)
      spec_copy(build, spec, "init");
  }
}

/* What has no value to show at the end of a step: handles, and what only steers control flow, which may be dead. */
static bool output_is_shown(const struct node *node, uint32_t port) {
  static const char *const steering[] = {"Switch", "RefSwitch", "Enter", "RefEnter", "NextIteration", "RefNextIteration",
                                         "LoopCond", "VariableV2", "Variable"};
  for (size_t i = 0; i < sizeof steering / sizeof *steering; i++)
    if (!strcmp(node->op, steering[i]))
      return false;
  enum dtype dtype = dtype_base(node->output_dtypes[port]);
  return dtype != DTYPE_RESOURCE && dtype != DTYPE_VARIANT;
}

static void main_add(struct build *build) {
  const struct graph *graph = build->model.graph;
  struct entry_spec spec = {.name = "main"};
  VEC(uint32_t) first = {0}; /* of each node: its first output in `used` */
  uint32_t total = 0;
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    vec_push(&first, total);
    total += graph->nodes.items[i].output_count;
  }
  bool *used = vec_grow(NULL, &(uint32_t){0}, total + 1, sizeof *used);
  memset(used, 0, total + 1);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    for (uint32_t k = 0; k < node->input_count; k++)
      if (node->inputs[k].port < graph->nodes.items[node->inputs[k].node].output_count)
        used[first.items[node->inputs[k].node] + node->inputs[k].port] = true;
  }
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    for (uint32_t port = 0; port < node->output_count; port++) {
      if (used[first.items[i] + port] || !output_is_shown(node, port))
        continue;
      const char *name = port ? arena_printf(&build->arena, "%s:%u", node->name, port) : node->name;
      vec_push(&spec.fetches, name);
      vec_push(&spec.fetch_keys, name);
    }
  }
  free(used);
  vec_free(&first);
  placeholders_feed(graph, &spec);
  vec_push(&build->specs, spec);
}

/* The chief runs what a SavedModel's loader would run, such as the filling of tables, as the entry `init`. */
static void main_op_add(struct build *build) {
  const struct graph *graph = build->model.graph;
  const char *name = build->model.main_op;
  size_t length = name ? strcspn(name, ":") : 0;
  const char *bare = name ? arena_strndup(&build->arena, name, length) : NULL;
  uint32_t node = bare ? graph_find(graph, bare) : NO_NODE;
  if (node == NO_NODE || spec_find(build, "init") || graph->nodes.items[node].input_count + graph->nodes.items[node].control_count == 0)
    return;
  struct entry_spec spec = {.name = "init"};
  build->init_is_loaders = true;
  vec_push(&spec.targets, bare);
  vec_push(&build->specs, spec);
}

static status defaults_make(struct build *build) {
  static const char *const collections[] = {"init_op", "local_init_op", "ready_op", "train_op", "summary_op"};
  static const char *const operations[] = {"init", "init_all", "train", "train_op", "train_step"};
  signatures_add(build);
  for (size_t i = 0; i < sizeof collections / sizeof *collections; i++)
    collection_add(build, collections[i], collections[i]);
  bool named = build->specs.count > 0;
  for (size_t i = 0; i < sizeof operations / sizeof *operations && !named; i++)
    operation_add(build, operations[i]);
  if (!build->model.variables_prefix)
    init_alias(build);
  if (!build->specs.count)
    main_add(build);
  if (build->specs.count == 1 && build->specs.items[0].fetches.count + build->specs.items[0].targets.count == 0)
    return fail(INVALID_ARGUMENT, "the graph has no output that could be fetched: name one with --entry");
  return OK;
}

status entries_resolve(struct build *build) {
  for (uint32_t i = 0; i < build->options.entries.count; i++) {
    struct entry_spec spec;
    status result = entry_parse(&build->arena, build->options.entries.items[i], &spec);
    vec_push(&build->specs, spec); /* a half-read one too: whoever frees the build frees it */
    TRY(result);
  }
  if (!build->specs.count)
    TRY(defaults_make(build));
  main_op_add(build);
  return specs_check(build);
}
