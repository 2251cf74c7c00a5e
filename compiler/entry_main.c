/* entry_main.c: what a graph computes that nothing in it consumes: the entry `main`. Beside a training step it is a guess: only what looks
 * like an answer of the model, and an entry for each set of feeds. */
#include <stdlib.h>
#include <string.h>

#include "base/gradient_name.h"
#include "compiler/entries.h"
#include "compiler/entry_defaults.h"

#define GROUPS_MAX 4 /* sets of feeds that differ */

struct spec_list {
  struct entry_spec *items; /* a VEC */
  uint32_t count, capacity;
};

/* What has no value to show at the end of a step: handles, and what only steers control flow, which may be dead. */
static bool output_is_shown(const struct node *node, uint32_t port) {
  static const char *const steering[] = {"Switch",           "RefSwitch", "Enter",      "RefEnter", "NextIteration",
                                         "RefNextIteration", "LoopCond",  "VariableV2", "Variable"};
  for (size_t i = 0; i < sizeof steering / sizeof *steering; i++)
    if (!strcmp(node->op, steering[i]))
      return false;
  enum dtype dtype = dtype_base(node->output_dtypes[port]);
  return dtype != DTYPE_RESOURCE && dtype != DTYPE_VARIANT;
}

/* Of each node: its first output among those of all nodes. */
static uint32_t *outputs_number(const struct graph *graph, uint32_t *total) {
  uint32_t *first = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *first);
  *total = 0;
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    first[i] = *total;
    *total += graph->nodes.items[i].output_count;
  }
  return first;
}

/* Per output, numbered so: whether a node takes it. */
static bool *used_mark(const struct graph *graph, const uint32_t *first, uint32_t total) {
  bool *used = vec_grow(NULL, &(uint32_t){0}, total + 1, sizeof *used);
  memset(used, 0, total + 1);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    for (uint32_t k = 0; k < node->input_count; k++)
      if (node->inputs[k].port < graph->nodes.items[node->inputs[k].node].output_count)
        used[first[node->inputs[k].node] + node->inputs[k].port] = true;
  }
  return used;
}

static bool is_input(const struct node *node) {
  static const char *const ops[] = {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "IteratorGetNext"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (!strcmp(node->op, ops[i]))
      return true;
  return strstr(node->op, "Dequeue") != NULL;
}

/* What updates, saves or makes gradients or summaries. */
static bool is_upkeep(const struct node *node) {
  return strstr(node->op, "Assign") || strstr(node->op, "Apply") || strstr(node->op, "Summary") || !strcmp(node->op, "RestoreV2") ||
         !strcmp(node->op, "SaveV2") || gradient_name_is(node->name);
}

/* In a graph that trains: all that is no answer of the model to what it is fed. */
static bool *training_mark(const struct graph *graph) {
  bool *starts = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *starts);
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    starts[i] = is_upkeep(&graph->nodes.items[i]);
  bool *marks = descendants_mark(graph, starts);
  bool is_fed = false;
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    is_fed |= starts[i] = is_input(&graph->nodes.items[i]);
  bool *answers = descendants_mark(graph, starts);
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    marks[i] = marks[i] || (is_fed && !answers[i]) || !strcmp(graph->nodes.items[i].op, "Shape");
  free(starts);
  free(answers);
  return marks;
}

/* The training step shows the loss, which needs labels. */
static bool is_shown_loss(const struct build *build, const char *name) {
  for (uint32_t i = 0; i < build->specs.count; i++)
    for (uint32_t k = 0; k < build->specs.items[i].fetches.count; k++)
      if (!strcmp(build->specs.items[i].fetch_keys.items[k], "loss") && !strcmp(build->specs.items[i].fetches.items[k], name))
        return true;
  return false;
}

/* ---- by what they are fed ---- */

static bool is_fed_alike(const struct entry_spec *a, const struct entry_spec *b) {
  bool alike = a->feeds.count == b->feeds.count;
  for (uint32_t i = 0; i < a->feeds.count && alike; i++)
    alike = !strcmp(a->feeds.items[i], b->feeds.items[i]);
  return alike;
}

/* Puts a fetch to those that need the same feeds: whoever asks for an answer need not know the labels. */
static void group_add(struct spec_list *groups, const struct graph *graph, const char *name) {
  struct entry_spec one = {.is_guess = true};
  entry_add_fetch(&one, name, name);
  entry_feed_placeholders(graph, &one);
  for (uint32_t i = 0; i < groups->count; i++)
    if (is_fed_alike(&groups->items[i], &one)) {
      entry_add_fetch(&groups->items[i], name, name);
      entry_spec_deinit(&one);
      return;
    }
  vec_push(groups, one);
}

/* The group that needs the least is `main`. */
static void groups_add(struct build *build, struct spec_list *groups) {
  uint32_t least = 0;
  for (uint32_t i = 1; i < groups->count; i++)
    if (groups->items[i].feeds.count < groups->items[least].feeds.count)
      least = i;
  for (uint32_t i = 0; i < groups->count; i++) {
    struct entry_spec *spec = &groups->items[i ? i <= least ? i - 1 : i : least];
    spec->name = i ? arena_printf(&build->arena, "main_%u", i) : "main";
    vec_push(&build->specs, *spec);
  }
}

/* ---- the entries ---- */

/* What a loop computes in a turn is no output of the graph: TensorFlow does not fetch it either. */
static void outputs_add(struct build *build, const bool *left_out, struct entry_spec *spec, struct spec_list *groups) {
  const struct graph *graph = build->model.graph;
  uint32_t total;
  uint32_t *first = outputs_number(graph, &total);
  bool *used = used_mark(graph, first, total), *in_loop = loops_mark(graph);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    for (uint32_t port = 0; port < node->output_count && !in_loop[i] && !(left_out && left_out[i]); port++) {
      if (used[first[i] + port] || !output_is_shown(node, port))
        continue;
      const char *name = port ? arena_printf(&build->arena, "%s:%u", node->name, port) : node->name;
      if (!left_out)
        entry_add_fetch(spec, name, name);
      else if (!is_shown_loss(build, name) && groups->count < GROUPS_MAX)
        group_add(groups, graph, name);
    }
  }
  free(in_loop);
  free(used);
  free(first);
}

void entry_main_add(struct build *build, bool is_guess) {
  struct entry_spec spec = {.name = "main"};
  struct spec_list groups = {0};
  bool *left_out = is_guess ? training_mark(build->model.graph) : NULL;
  outputs_add(build, left_out, &spec, &groups);
  free(left_out);
  groups_add(build, &groups);
  vec_free(&groups);
  if (is_guess)
    return;
  entry_feed_placeholders(build->model.graph, &spec);
  vec_push(&build->specs, spec);
}
