/* entry_session.c: what a client that manages its session (MonitoredTrainingSession, Supervisor) runs beside the
 * training step: each of its operations alone, its saver, the global step, and the step with what hooks fetch with it.
 *
 * Only where the graph is that of such a session, as it was when it began: it has the operations that say whether it
 * may begin.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/entries.h"
#include "compiler/entry_defaults.h"

static const struct attr *collection_find(const struct build *b, const char *name) {
  for (uint32_t i = 0; i < b->model.collections.count; i++)
    if (!strcmp(b->model.collections.items[i].name, name))
      return &b->model.collections.items[i];
  return NULL;
}

static bool is_text(const struct attr_value *item) {
  for (uint64_t i = 0; i < item->s.size; i++)
    if ((unsigned char)item->s.data[i] < ' ')
      return false;
  return true;
}

const char *entry_item_name(struct arena *arena, const struct attr_value *item) {
  const unsigned char *p = (const unsigned char *)item->s.data;
  if (is_text(item))
    return item->s.data;
  if (item->s.size > 2 && p[0] == 0x0a && p[1] < 0x80 && p[1] + 2u <= item->s.size)
    return arena_strndup(arena, (const char *)p + 2, p[1]);
  return "...";
}

/* Whether the entry does not make the same as one that is there; it is then another's. */
static bool is_new(const struct build *b, const struct entry_spec *spec) {
  for (uint32_t i = 0; i < b->specs.count; i++) {
    const struct entry_spec *s = &b->specs.items[i];
    bool same = s->feeds.count == spec->feeds.count && s->targets.count == spec->targets.count && s->fetches.count == spec->fetches.count;
    for (uint32_t k = 0; k < s->targets.count && same; k++)
      same = !strcmp(s->targets.items[k], spec->targets.items[k]);
    for (uint32_t k = 0; k < s->fetches.count && same; k++)
      same = !strcmp(s->fetches.items[k], spec->fetches.items[k]);
    if (same)
      return false;
  }
  return true;
}

static void spec_add(struct build *b, struct entry_spec *spec) {
  if (spec->targets.count + spec->fetches.count == 0 || !is_new(b, spec)) {
    entry_spec_deinit(spec);
    return;
  }
  for (uint32_t i = 1; entry_find(b, spec->name); i++)
    spec->name = arena_printf(&b->arena, "%s_%u", spec->name, i);
  spec->is_guess = true;
  vec_push(&b->specs, *spec);
}

static void operation_add(struct build *b, const char *name, const char *operation) {
  struct entry_spec spec = {.name = name};
  if (!operation || graph_find(b->model.graph, operation) == NO_NODE)
    return;
  vec_push(&spec.targets, operation);
  spec_add(b, &spec);
}

static void fetches_add(struct build *b, const char *collection, struct entry_spec *spec) {
  const struct attr *a = collection_find(b, collection);
  struct edge edge;
  for (uint32_t i = 0; a && i < a->value.list.count; i++) {
    const char *tensor = entry_item_name(&b->arena, &a->value.list.items[i]);
    bool there = graph_find_output(b->model.graph, tensor, &edge) != OK || !strchr(tensor, ':');
    for (uint32_t k = 0; k < spec->fetches.count && !there; k++)
      there = !strcmp(spec->fetches.items[k], tensor);
    if (!there)
      entry_add_fetch(spec, tensor, tensor);
  }
}

/* Hooks read the global step through an operation of their own. */
static void global_step_add(struct build *b, struct entry_spec *spec) {
  fetches_add(b, "global_step", spec);
  fetches_add(b, "global_step_read_op_cache", spec);
}

/* The step as the loop of a session runs it. */
static void step_add(struct build *b, const char *name, const char *more) {
  const struct entry_spec *train = entry_find(b, "train_op");
  struct entry_spec spec = {.name = name};
  for (uint32_t i = 0; train && i < train->targets.count; i++)
    vec_push(&spec.targets, train->targets.items[i]);
  for (uint32_t i = 0; train && i < train->fetches.count; i++)
    entry_add_fetch(&spec, train->fetches.items[i], train->fetch_keys.items[i]);
  if (train) {
    global_step_add(b, &spec);
    uint32_t count = spec.fetches.count;
    if (more)
      fetches_add(b, more, &spec);
    if (more && count == spec.fetches.count)
      spec.fetches.count = spec.fetch_keys.count = spec.targets.count = 0;
    entry_feed_placeholders(b->model.graph, &spec);
  }
  spec_add(b, &spec);
}

static void savers_add(struct build *b) {
  for (uint32_t i = 0; i < b->model.savers.count; i++) {
    const struct saver_names *saver = &b->model.savers.items[i];
    struct entry_spec save = {.name = "save"}, restore = {.name = "restore"};
    struct edge edge;
    if (graph_find_output(b->model.graph, saver->filename, &edge) != OK || graph_find_output(b->model.graph, saver->save, &edge) != OK ||
        graph_find(b->model.graph, saver->restore) == NO_NODE)
      continue;
    entry_add_feed(&save, saver->filename, saver->filename);
    entry_add_fetch(&save, saver->save, saver->save);
    spec_add(b, &save);
    entry_add_feed(&restore, saver->filename, saver->filename);
    vec_push(&restore.targets, saver->restore);
    spec_add(b, &restore);
  }
}

/* ---- SyncReplicasOptimizer ---- */

static bool groups_marked(const struct node *node, const bool *marks) {
  for (uint32_t k = 0; k < node->control_count && !strcmp(node->op, "NoOp"); k++)
    if (marks[node->controls[k]])
      return true;
  return false;
}

/* The groups that tell accumulators the global step: one for each device, and one of all, which a hook runs. */
static void step_groups_add(struct build *b) {
  const struct graph *graph = b->model.graph;
  bool *tells = calloc((size_t)graph->nodes.count + 1, sizeof *tells);
  for (uint32_t i = 0; tells && i < graph->nodes.count; i++)
    tells[i] = token_round_sets_step(&graph->nodes.items[i]);
  for (bool more = tells; more;) {
    more = false;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
      if (!tells[i] && groups_marked(&graph->nodes.items[i], tells)) {
        more = tells[i] = true;
        operation_add(b, graph->nodes.items[i].name, graph->nodes.items[i].name);
      }
  }
  free(tells);
}

static bool ends_with(const char *text, const char *with) {
  size_t m = strlen(text), n = strlen(with);
  return m >= n && !strcmp(text + m - n, with);
}

/* The names of variables without values, which hooks ask for by themselves; TensorFlow's naming. */
static void reports_add(struct build *b) {
  const struct graph *graph = b->model.graph;
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const char *name = graph->nodes.items[i].name;
    struct entry_spec spec = {.name = "uninitialized"};
    if (!strstr(name, "report_uninitialized") || !ends_with(name, "boolean_mask/GatherV2"))
      continue;
    entry_add_fetch(&spec, name, name);
    spec_add(b, &spec);
  }
}

static const char *name_of(const struct build *b, uint32_t node) { return node == NO_NODE ? NULL : b->model.graph->nodes.items[node].name; }

/* The same as a tensor, where it gives one: a program of TensorFlow may hold either. */
static void tensor_add(struct build *b, const char *name, uint32_t node) {
  struct entry_spec spec = {.name = name};
  if (node == NO_NODE || !b->model.graph->nodes.items[node].output_count)
    return;
  const char *tensor = arena_printf(&b->arena, "%s:0", name_of(b, node));
  entry_add_fetch(&spec, tensor, tensor);
  spec_add(b, &spec);
}

static void round_add(struct build *b) {
  if (!b->has_round)
    return;
  step_groups_add(b);
  reports_add(b);
  operation_add(b, "local_step_init", name_of(b, b->round.local_init));
  tensor_add(b, "local_step_init", b->round.local_init);
  operation_add(b, "first_tokens", name_of(b, b->round.first_tokens));
}

void entry_session_add(struct build *b) {
  if (!collection_find(b, "ready_op") || !collection_find(b, "ready_for_local_init_op"))
    return;
  struct entry_spec step = {.name = "global_step"};
  global_step_add(b, &step);
  spec_add(b, &step);
  step_add(b, "session_step", NULL);
  step_add(b, "session_step_summary", "summary_op");
  savers_add(b);
  round_add(b);
  for (uint32_t i = 0; i < b->model.queue_runners.count; i++) {
    const struct queue_runner *runner = &b->model.queue_runners.items[i];
    for (uint32_t k = 0; k < runner->enqueue_ops.count; k++)
      operation_add(b, runner->enqueue_ops.items[k], runner->enqueue_ops.items[k]);
    operation_add(b, runner->close_op, runner->close_op);
    operation_add(b, runner->cancel_op, runner->cancel_op);
  }
}
