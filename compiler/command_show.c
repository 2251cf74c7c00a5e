/* command_show.c: tfc show: what a graph holds that a user has to know before building it: placeholders, variables, signatures,
 * collections, and the entries that a build without --entry would have, as options to paste. Nothing is lowered or built. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/commands.h"
#include "compiler/entries.h"
#include "compiler/entry_defaults.h"
#include "compiler/entry_runners.h"
#include "compiler/graph_walk.h"
#include "compiler/pass/pass.h"
#include "ir/graph/registry.h"

#define LIST_MAX 40 /* lines of one list */
#define ITEMS_MAX 6 /* names on one line */

static bool is_one_of(const char *op, const char *const *ops) {
  for (; *ops; ops++)
    if (strcmp(op, *ops) == 0)
      return true;
  return false;
}

/* "float[?,784]", "float[...]" where not even the rank is known. */
static const char *shape_attr_text(struct arena *arena, enum dtype dtype, const struct attr_shape *shape) {
  const char *text = arena_printf(arena, "%s[", dtype_name(dtype));
  if (!shape || shape->unknown_rank)
    return arena_printf(arena, "%s...]", text);
  for (int i = 0; i < shape->rank; i++)
    text = shape->dims[i] < 0 ? arena_printf(arena, "%s%s?", text, i ? "," : "")
                              : arena_printf(arena, "%s%s%lld", text, i ? "," : "", (long long)shape->dims[i]);
  return arena_printf(arena, "%s]", text);
}

static const char *node_type_text(struct arena *arena, const struct node *n) {
  enum dtype dtype = n->output_count ? dtype_base(n->output_dtypes[0]) : DTYPE_INVALID;
  if (dtype == DTYPE_RESOURCE)
    dtype = (enum dtype)node_attr_int(n, "dtype", DTYPE_RESOURCE);
  return shape_attr_text(arena, dtype, node_attr_shape(n, "shape"));
}

/* The nodes that the entries need; NULL: all are to be shown. A SavedModel of TensorFlow 2 has each variable several times, and most of
 * these are there for its loader alone. To be freed. */
static bool *find_used(struct build *b) {
  const struct graph *graph = b->model.graph;
  VEC(uint32_t) seeds = {0};
  if (!b->model.objects.count || !b->specs.count)
    return NULL;
  for (uint32_t i = 0; i < b->specs.count; i++) {
    const struct entry_spec *s = &b->specs.items[i];
    struct edge e;
    for (uint32_t k = 0; k < s->fetches.count; k++)
      if (graph_find_output(graph, s->fetches.items[k], &e) == OK)
        vec_push(&seeds, e.node);
    for (uint32_t k = 0; k < s->targets.count; k++)
      if (graph_find(graph, s->targets.items[k]) != NO_NODE)
        vec_push(&seeds, graph_find(graph, s->targets.items[k]));
  }
  bool *used = ancestors_mark(graph, seeds.items, seeds.count);
  vec_free(&seeds);
  return used;
}

static void print_nodes(struct build *b, const char *title, const char *const *ops, const bool *used) {
  uint32_t count = 0, unused = 0;
  for (uint32_t i = 0; i < b->model.graph->nodes.count; i++) {
    const struct node *n = &b->model.graph->nodes.items[i];
    if (!is_one_of(n->op, ops))
      continue;
    if (count == 0 && unused == 0)
      printf("%s\n", title);
    if (used && !used[i])
      unused++;
    else if (count++ < LIST_MAX)
      printf("  %-32s %s%s%s\n", n->name, node_type_text(&b->arena, n), *n->device ? "  on " : "", n->device);
  }
  if (count > LIST_MAX)
    printf("  and %u more\n", count - LIST_MAX);
  if (unused)
    printf("  %s%u that none of the entries below uses\n", count ? "and " : "", unused);
}

/* ---- signatures and functions ---- */

static const char *tensor_text(struct build *b, const struct signature_tensor *t) {
  struct edge e;
  if (graph_find_output(b->model.graph, t->tensor, &e) != OK)
    return "?";
  const struct node *n = &b->model.graph->nodes.items[e.node];
  const struct attr_shape *shape = node_attr_shape(n, "shape");
  if (e.port >= n->output_count)
    return "?";
  return shape_attr_text(&b->arena, dtype_base(n->output_dtypes[e.port]), shape ? shape : node_output_shape(n, e.port));
}

static void print_signatures(struct build *b) {
  if (b->model.signatures.count)
    printf("signatures\n");
  for (uint32_t i = 0; i < b->model.signatures.count; i++) {
    const struct signature *s = &b->model.signatures.items[i];
    printf("  %s\n", s->name);
    for (uint32_t k = 0; k < s->inputs.count; k++)
      printf("    takes  %s = %s  %s\n", s->inputs.items[k].key, s->inputs.items[k].tensor, tensor_text(b, &s->inputs.items[k]));
    for (uint32_t k = 0; k < s->outputs.count; k++)
      printf("    gives  %s = %s  %s\n", s->outputs.items[k].key, s->outputs.items[k].tensor, tensor_text(b, &s->outputs.items[k]));
  }
}

static void print_methods(struct build *b) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->model.methods.count; i++) {
    const struct method *m = &b->model.methods.items[i];
    const struct captures *c = &b->model.captures.items[m->function];
    if (!m->node)
      continue;
    if (count++ == 0)
      printf("functions of the root object\n");
    printf("  %s(", m->node);
    for (uint32_t k = 0; k < c->input_count; k++)
      printf("%s%s", k ? ", " : "", c->inputs[k].key);
    printf(")%s", c->output_count ? " -> " : "");
    for (uint32_t k = 0; k < c->output_count; k++)
      printf("%s%s", k ? ", " : "", c->outputs[k].key);
    printf("\n");
  }
}

/* ---- collections ---- */

static void print_collections(struct build *b) {
  if (b->model.collections.count)
    printf("collections\n");
  for (uint32_t i = 0; i < b->model.collections.count; i++) {
    const struct attr *a = &b->model.collections.items[i];
    printf("  %-24s", a->name);
    for (uint32_t k = 0; k < a->value.list.count && k < ITEMS_MAX; k++) {
      const struct attr_value *item = &a->value.list.items[k];
      printf("%s%s", k ? ", " : " ", entry_item_name(&b->arena, item));
    }
    if (a->value.list.count > ITEMS_MAX)
      printf(" and %u more", a->value.list.count - ITEMS_MAX);
    printf("\n");
  }
}

/* ---- candidates ---- */

static void print_ports(const char *const *tensors, const char *const *keys, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    printf("%s%s%s%s", i ? ", " : " ", strcmp(tensors[i], keys[i]) ? keys[i] : "", strcmp(tensors[i], keys[i]) ? "=" : "", tensors[i]);
}

static void print_spec(const struct entry_spec *s) {
  printf("  --entry '%s:", s->name);
  print_ports(s->feeds.items, s->feed_keys.items, s->feeds.count);
  printf(" ->");
  print_ports(s->fetches.items, s->fetch_keys.items, s->fetches.count);
  for (uint32_t i = 0; i < s->targets.count; i++)
    printf("%s%s", i ? ", " : " | ", s->targets.items[i]);
  printf("'\n");
}

static bool is_run(const struct build *b, uint32_t node) {
  bool runs = false;
  for (uint32_t i = 0; i < b->specs.count && !runs; i++) {
    bool *needed = entry_mark_needed(b->model.graph, &b->specs.items[i]);
    runs = needed[node];
    free(needed);
  }
  return runs;
}

/* What would fill the graph's queues, where no queue runner does: somebody has to run an entry. */
static void print_enqueues(struct build *b) {
  static const char *const ops[] = {"QueueEnqueue", "QueueEnqueueV2", "QueueEnqueueMany", "QueueEnqueueManyV2", NULL};
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->model.graph->nodes.count; i++) {
    const struct node *n = &b->model.graph->nodes.items[i];
    if (!is_one_of(n->op, ops) || is_run(b, i))
      continue;
    struct entry_spec spec = {.name = count ? arena_printf(&b->arena, "fill_%u", count) : "fill"};
    vec_push(&spec.targets, n->name);
    entry_feed_placeholders(b->model.graph, &spec);
    print_spec(&spec);
    entry_spec_deinit(&spec);
    count++;
  }
}

static void print_candidates(struct build *b) {
  printf("entries that `tfc build` makes of it without --entry; named on its command line, they can be changed\n");
  for (uint32_t i = 0; i < b->specs.count; i++)
    print_spec(&b->specs.items[i]);
  for (uint32_t i = 0; i < b->aliases.count; i++)
    printf("  (%s is also called %s)\n", b->aliases.items[i].entry, b->aliases.items[i].name);
  print_enqueues(b);
  entry_runners_print(stdout, b);
}

status command_show(struct build *b) {
  static const char *const placeholders[] = {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", NULL};
  static const char *const variables[] = {"VarHandleOp", "VariableV2", "Variable", NULL};
  TRY(pass_read(b));
  TRY(registry_check(b->model.graph));
  printf("%s: %u nodes, %u functions\n", b->options.graph_path, b->model.graph->nodes.count, b->model.graph->functions.count);
  if (b->model.tag_sets)
    printf("graphs, by their tags (--tags): %s\n", b->model.tag_sets);
  TRY(pass_methods(b));
  status resolved = entries_resolve(b);
  const char *why = resolved == OK ? "" : arena_strdup(&b->arena, status_text());
  bool *used = resolved == OK ? find_used(b) : NULL;
  print_nodes(b, "placeholders", placeholders, used);
  print_nodes(b, "variables", variables, used);
  free(used);
  print_signatures(b);
  print_methods(b);
  print_collections(b);
  if (resolved != OK)
    return fail(resolved, "%s", why);
  print_candidates(b);
  return OK;
}
