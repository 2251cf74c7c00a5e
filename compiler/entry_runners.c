/* entry_runners.c: queue runners of a MetaGraphDef, and that of a SyncReplicasOptimizer's chief, which a hook would
 * start and no collection names.
 *
 * A runner is needed when something that an entry runs takes from its queue. What has to be done before the chief's
 * first round (accumulators hear of the global step, first tokens) is the entry that its runner begins with.
 */
#include "compiler/entry_runners.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/device.h"
#include "compiler/entries.h"
#include "compiler/entry_defaults.h"
#include "compiler/graph_walk.h"

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* ---- rounds ---- */

/* The job of a worker's own nodes, when there are several such tasks and the graph names the first at most; else NULL.
 */
static const char *job_to_replicate(struct build *b) {
  const struct graph *graph = b->model.graph;
  struct device_spec own, spec;
  if (!device_parse(&b->arena, graph->nodes.items[b->round.step].device, &own) || !own.job)
    return NULL;
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    if (device_parse(&b->arena, graph->nodes.items[i].device, &spec) && spec.job && !strcmp(spec.job, own.job) && spec.task > 0)
      return NULL;
  return cluster_find(&b->cluster, own.job, 1) == UINT32_MAX ? NULL : own.job;
}

static int64_t count_replicas(const struct build *b) {
  int64_t count = 0;
  for (uint32_t i = 0; i < b->cluster.tasks.count && build_replicated(b); i++)
    count += strcmp(b->cluster.tasks.items[i].job, build_replicated(b)) == 0;
  return count;
}

void entry_round_find(struct build *b) {
  b->has_round = token_round_find(b->model.graph, &b->arena, &b->round);
  if (!b->has_round)
    return;
  if (!b->options.replicate && !b->options.strategy)
    b->replicated_job = job_to_replicate(b);
  if (count_replicas(b))
    token_round_mark(b->model.graph, &b->round, count_replicas(b));
}

/* Whether a worker must not run it: it takes what all have applied. */
static bool is_runners(const struct build *b, const char *name) {
  struct edge edge;
  uint32_t node = graph_find_output(b->model.graph, name, &edge) == OK ? edge.node : graph_find(b->model.graph, name);
  return node != NO_NODE && b->round.taken[node];
}

static bool spec_runs(const struct build *b, const struct entry_spec *spec, uint32_t node) {
  bool *needed = entry_mark_needed(b->model.graph, spec), runs = needed[node];
  free(needed);
  return runs;
}

/* As a program of TensorFlow asks for it: the tensor, where the assignment gives one. */
static void step_add(const struct build *b, struct entry_spec *spec) {
  const struct node *step = &b->model.graph->nodes.items[b->round.step];
  const char *tensor = arena_printf(b->model.graph->arena, "%s:0", step->name);
  if (step->output_count)
    entry_add_fetch(spec, tensor, tensor);
  else
    vec_push(&spec->targets, step->name);
}

static void targets_mend(const struct build *b, struct entry_spec *spec) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < spec->targets.count; i++)
    if (!is_runners(b, spec->targets.items[i]))
      spec->targets.items[kept++] = spec->targets.items[i];
  spec->targets.count = kept;
  if (!spec_runs(b, spec, b->round.step))
    step_add(b, spec);
}

void entry_round_mend(struct build *b) {
  bool trains = false;
  for (uint32_t i = 0; i < b->specs.count && b->has_round; i++) {
    struct entry_spec *spec = &b->specs.items[i];
    if (!begins(spec->name, "train"))
      continue;
    trains = true;
    targets_mend(b, spec);
    entry_loss_fetch(b, spec);
    spec->feeds.count = spec->feed_keys.count = 0;
    entry_feed_placeholders(b->model.graph, spec);
  }
  if (!b->has_round || trains)
    return;
  struct entry_spec spec = {.name = "train"};
  step_add(b, &spec);
  entry_loss_fetch(b, &spec);
  entry_feed_placeholders(b->model.graph, &spec);
  vec_push(&b->specs, spec);
}

/* ---- what is needed ---- */

static void nodes_join(bool *all, bool *more, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    all[i] = all[i] || more[i];
  free(more);
}

static bool *entries_mark(const struct build *b) {
  uint32_t count = b->model.graph->nodes.count;
  bool *needed = calloc((size_t)count + 1, sizeof *needed);
  for (uint32_t i = 0; needed && i < b->specs.count; i++)
    nodes_join(needed, entry_mark_needed(b->model.graph, &b->specs.items[i]), count);
  return needed;
}

/* Puts, or asks; everything else that has a queue takes from it: readers, too. */
static bool takes(const struct node *node) {
  return !begins(node->op, "QueueEnqueue") && !begins(node->op, "QueueClose") && !begins(node->op, "QueueSize") &&
         !begins(node->op, "QueueIsClosed");
}

static bool is_taken_from(const struct graph *graph, uint32_t queue, const bool *needed) {
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    for (uint32_t k = 0; k < graph->nodes.items[i].input_count && needed[i]; k++)
      if (graph->nodes.items[i].inputs[k].node == queue && takes(&graph->nodes.items[i]))
        return true;
  return false;
}

/* What one of its threads runs puts into a queue from which a needed node takes. */
static bool is_needed(const struct graph *graph, uint32_t operation, const bool *needed) {
  bool *runs = ancestors_mark(graph, &operation, 1), found = false;
  for (uint32_t i = 0; i < graph->nodes.count && !found; i++)
    found =
      runs[i] && begins(graph->nodes.items[i].op, "QueueEnqueue") && is_taken_from(graph, graph->nodes.items[i].inputs[0].node, needed);
  free(runs);
  return found;
}

/* ---- runners ---- */

static const char *free_name(struct build *b, const char *operation) {
  const char *name = operation;
  for (uint32_t i = 1; entry_find(b, name); i++)
    name = arena_printf(&b->arena, "%s_%u", operation, i);
  return name;
}

/* An entry that runs one operation; threads of one runner may run the same. */
static const char *operation_entry(struct build *b, const char *operation) {
  for (uint32_t i = 0; i < b->specs.count; i++) {
    const struct entry_spec *s = &b->specs.items[i];
    if (s->targets.count == 1 && !strcmp(s->targets.items[0], operation) && s->feeds.count + s->fetches.count == 0)
      return s->name;
  }
  struct entry_spec spec = {.name = free_name(b, operation)};
  vec_push(&spec.targets, operation);
  vec_push(&b->specs, spec);
  return spec.name;
}

static const char *begin_entry(struct build *b) {
  const struct graph *graph = b->model.graph;
  struct entry_spec spec = {.name = free_name(b, arena_printf(&b->arena, "%s_begin", graph->nodes.items[b->round.queue].name))};
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    if (token_round_sets_step(&graph->nodes.items[i]))
      vec_push(&spec.targets, graph->nodes.items[i].name);
  if (b->round.first_tokens != NO_NODE)
    vec_push(&spec.targets, graph->nodes.items[b->round.first_tokens].name);
  if (!spec.targets.count)
    return NULL;
  vec_push(&b->specs, spec);
  return spec.name;
}

/* A placeholder that nobody could feed. */
static const char *placeholder_of(const struct graph *graph, uint32_t operation) {
  bool *runs = ancestors_mark(graph, &operation, 1);
  const char *name = NULL;
  for (uint32_t i = 0; i < graph->nodes.count && !name; i++)
    if (runs[i] && (!strcmp(graph->nodes.items[i].op, "Placeholder") || !strcmp(graph->nodes.items[i].op, "PlaceholderV2")))
      name = graph->nodes.items[i].name;
  free(runs);
  return name;
}

static void runner_add(struct build *b, const struct queue_runner *runner, bool *needed) {
  const struct graph *graph = b->model.graph;
  struct build_runner out = {.name = runner->queue, .end_codes = runner->end_codes};
  for (uint32_t i = 0; i < runner->enqueue_ops.count; i++) {
    uint32_t node = graph_find(graph, runner->enqueue_ops.items[i]);
    const char *fed = placeholder_of(graph, node);
    if (fed) {
      const char *reason = arena_printf(&b->arena, "a queue runner's: nobody feeds '%s'", fed);
      vec_push(&b->dropped, (struct entry_dropped){runner->enqueue_ops.items[i], reason});
      continue;
    }
    out.is_chiefs = out.is_chiefs || !build_replicated(b) || (b->has_round && b->round.taken[node]);
    vec_push(&out.entries, operation_entry(b, runner->enqueue_ops.items[i]));
    nodes_join(needed, ancestors_mark(graph, &node, 1), graph->nodes.count);
  }
  if (!out.entries.count)
    return;
  if (b->has_round && b->round.taken[graph_find(graph, runner->enqueue_ops.items[0])])
    out.begin = begin_entry(b);
  if (graph_find(graph, runner->close_op) != NO_NODE)
    out.close = operation_entry(b, runner->close_op);
  vec_push(&b->runners, out);
}

/* Its operations are in the graph, no entry runs them already, and somebody wants what they put. */
static bool is_wanted(const struct build *b, const struct queue_runner *runner, const bool *by_hand, const bool *needed) {
  uint32_t queue = graph_find(b->model.graph, runner->queue); /* a cond's enqueue has it through a switch, or in a function */
  bool wanted = queue != NO_NODE && is_taken_from(b->model.graph, queue, needed);
  for (uint32_t i = 0; i < runner->enqueue_ops.count; i++) {
    uint32_t node = graph_find(b->model.graph, runner->enqueue_ops.items[i]);
    if (node == NO_NODE || by_hand[node])
      return false;
    wanted = wanted || is_needed(b->model.graph, node, needed);
  }
  return wanted;
}

/* The chief's, where no collection has it. */
static void round_runner_note(struct build *b) {
  const struct graph *graph = b->model.graph;
  for (uint32_t i = 0; i < b->model.queue_runners.count; i++)
    for (uint32_t k = 0; k < b->model.queue_runners.items[i].enqueue_ops.count; k++) {
      uint32_t node = graph_find(graph, b->model.queue_runners.items[i].enqueue_ops.items[k]);
      if (node != NO_NODE && b->round.taken[node])
        return;
    }
  struct queue_runner runner = {.queue = graph->nodes.items[b->round.queue].name, .close_op = "", .end_codes = UINT64_C(1) << OUT_OF_RANGE};
  vec_push(&runner.enqueue_ops, graph->nodes.items[b->round.end].name);
  vec_push(&b->model.queue_runners, runner);
}

/* The local step of each worker follows the global one, once that has a value. */
static void late_init_add(struct build *b) {
  if (!b->has_round || b->round.local_init == NO_NODE || entry_find(b, "late_init") || !b->runners.count)
    return;
  struct entry_spec spec = {.name = "late_init"};
  vec_push(&spec.targets, b->model.graph->nodes.items[b->round.local_init].name);
  vec_push(&b->specs, spec);
}

void entry_runners_add(struct build *b) {
  if (b->has_round)
    round_runner_note(b);
  uint32_t count = b->model.queue_runners.count;
  bool *by_hand = entries_mark(b), *needed = entries_mark(b), *added = calloc((size_t)count + 1, sizeof *added);
  for (bool more = by_hand && needed && added; more;) {
    more = false;
    for (uint32_t i = 0; i < count; i++)
      if (!added[i] && is_wanted(b, &b->model.queue_runners.items[i], by_hand, needed)) {
        more = added[i] = true;
        runner_add(b, &b->model.queue_runners.items[i], needed);
      }
  }
  free(by_hand);
  free(needed);
  free(added);
  late_init_add(b);
}

/* ---- text ---- */

static bool is_before(const struct build_runner *r, uint32_t i) {
  for (uint32_t k = 0; k < i; k++)
    if (!strcmp(r->entries.items[k], r->entries.items[i]))
      return true;
  return false;
}

static void print_loops(FILE *out, const struct build_runner *r) {
  for (uint32_t i = 0; i < r->entries.count; i++) {
    uint32_t threads = 0;
    for (uint32_t k = 0; k < r->entries.count; k++)
      threads += !strcmp(r->entries.items[k], r->entries.items[i]);
    if (is_before(r, i))
      continue;
    fprintf(out, "%s%s", i ? ", " : "", r->entries.items[i]);
    if (threads > 1)
      fprintf(out, " (%u threads)", threads);
  }
}

void entry_runners_print(FILE *out, const struct build *b) {
  if (b->runners.count)
    fputs("runners: entries that are run again and again beside the phases\n", out);
  for (uint32_t i = 0; i < b->runners.count; i++) {
    const struct build_runner *r = &b->runners.items[i];
    fprintf(out, "  %s, by %s%s: ", r->name, r->is_chiefs ? "the chief" : "each ", r->is_chiefs ? "" : build_replicated(b));
    if (r->begin)
      fprintf(out, "%s first; ", r->begin);
    print_loops(out, r);
    if (r->close)
      fprintf(out, "; %s at the end", r->close);
    fputc('\n', out);
  }
  int64_t replicas = count_replicas(b);
  if (b->has_round && replicas && b->round.required > replicas * token_round_share(&b->round, replicas))
    fprintf(out,
            "note: a round waits for %lld gradients of %lld workers, and nothing gives them first tokens "
            "(get_init_tokens_op): it takes one of each\n",
            (long long)b->round.required, (long long)replicas);
}
