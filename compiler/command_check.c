/* command_check.c: tfc check: what a build would say, all at once and without building: unsupported ops with their nodes, where
 * every node goes, and for each task the memory of its variables and values and the bytes that cross to others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/commands.h"
#include "compiler/cuts.h"
#include "compiler/edit/part_walk.h"
#include "compiler/pipeline.h"
#include "ir/lower/lower.h"
#include "ir/lower/unsupported.h"

/* ---- unsupported ops ---- */

static void mark_needed(struct build *b, bool *needed) {
  for (uint32_t i = 0; i < b->specs.count; i++) {
    const struct entry_spec *s = &b->specs.items[i];
    if (s->is_guess)
      continue;
    struct lower_request r = {.graph = b->model.graph};
    r.feeds = ARENA_ARRAY(&b->arena, struct edge, s->feeds.count + 1);
    r.fetches = ARENA_ARRAY(&b->arena, struct edge, s->fetches.count + 1);
    r.targets = ARENA_ARRAY(&b->arena, uint32_t, s->targets.count + 1);
    for (uint32_t j = 0; j < s->feeds.count; j++)
      if (graph_find_output(b->model.graph, s->feeds.items[j], &r.feeds[r.feed_count]) == OK)
        r.feed_count++;
    for (uint32_t j = 0; j < s->fetches.count; j++)
      if (graph_find_output(b->model.graph, s->fetches.items[j], &r.fetches[r.fetch_count]) == OK)
        r.fetch_count++;
    for (uint32_t j = 0; j < s->targets.count; j++)
      if ((r.targets[r.target_count] = graph_find(b->model.graph, s->targets.items[j])) != NO_NODE)
        r.target_count++;
    bool *own = ARENA_ARRAY(&b->arena, bool, b->model.graph->nodes.count + 1);
    if (lower_mark_needed(&r, own) == OK)
      for (uint32_t n = 0; n < b->model.graph->nodes.count; n++)
        needed[n] = needed[n] || own[n];
  }
}

static status report_unsupported(struct build *b) {
  const struct graph *g = b->model.graph;
  bool *needed = ARENA_ARRAY(&b->arena, bool, g->nodes.count + 1);
  struct unsupported found = {0};
  const char *list = "";
  mark_needed(b, needed);
  unsupported_find(g, needed, &b->arena, &found);
  for (uint32_t o = 0; o < found.ops.count; o++) {
    const struct unsupported_op *op = &found.ops.items[o];
    printf("unsupported op %s%s%s%s:", op->op, op->reason ? " (" : "", op->reason ? op->reason : "", op->reason ? ")" : "");
    for (uint32_t i = 0; i < op->nodes.count; i++)
      printf(" %s", op->nodes.items[i]);
    printf("\n");
    list = arena_printf(&b->arena, "%s%s%s", list, o ? ", " : "", op->op);
  }
  uint32_t count = found.ops.count;
  unsupported_deinit(&found);
  return count ? fail(UNIMPLEMENTED, "ops not supported: %s", list) : OK;
}

/* ---- memory and traffic ---- */

static const char *task_text(struct build *b, uint32_t task) {
  if (task == TASK_DRIVER)
    return "the task that runs it";
  if (task == TASK_SELF)
    return arena_printf(&b->arena, "each /job:%s", build_replicated(b));
  return arena_printf(&b->arena, "/job:%s/task:%u", b->cluster.tasks.items[task].job, b->cluster.tasks.items[task].index);
}

struct traffic {
  uint32_t kernels, transfers;
  int64_t made, sent;
  bool open; /* sizes that are not known */
};
/* With the bodies of its loops and conds, of one turn. */
static void count_flow(const struct flow *f, struct traffic *t) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (!n)
      continue;
    t->kernels += n->op == FLOW_KERNEL;
    for (uint32_t i = 0; n->op == FLOW_KERNEL && i < n->outputs.count; i++)
      t->made += flow_value_bytes(f, n->outputs.items[i], &t->open);
    if (n->op == FLOW_SEND) {
      t->transfers++;
      t->sent += flow_value_bytes(f, n->inputs.items[0], &t->open);
    }
    for (uint32_t r = 0; r < n->region_count; r++)
      count_flow(n->branches[r], t);
  }
}

static void report_part(struct build *b, const struct entry *e, const struct entry_part *p) {
  struct traffic t = {0};
  count_flow(p->flow, &t);
  printf("entry %s on %s: %u kernels, %lld bytes of values, %u transfers of %lld bytes%s\n", part_entry_name(b, e), task_text(b, p->task),
         t.kernels, (long long)t.made, t.transfers, (long long)t.sent, t.open ? " (unknown sizes taken as 1)" : "");
}

/* A line for each node, unless one says it of all. */
static void report_placement(struct build *b) {
  const struct graph *graph = b->model.graph;
  bool alike = graph->nodes.count > 0;
  for (uint32_t i = 1; i < graph->nodes.count && alike; i++)
    alike = strcmp(graph->nodes.items[i].assigned, graph->nodes.items[0].assigned) == 0;
  if (alike)
    printf("all %u nodes: %s\n", graph->nodes.count, graph->nodes.items[0].assigned);
  for (uint32_t i = 0; i < graph->nodes.count && !alike; i++)
    printf("%s (%s): %s\n", graph->nodes.items[i].name, graph->nodes.items[i].op, graph->nodes.items[i].assigned);
}

static void report_variables(struct build *b) {
  for (uint32_t t = 0; t <= b->cluster.tasks.count; t++) {
    uint32_t task = t < b->cluster.tasks.count ? t : TASK_SELF, count = 0;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < b->vars.count; i++) {
      const struct flow_var *v = &b->vars.items[i];
      if (v->task != task)
        continue;
      int64_t n = (int64_t)dtype_size(v->dtype);
      for (int d = 0; d < v->rank && v->has_shape; d++)
        n *= v->dims[d];
      count++;
      bytes += n;
    }
    if (count)
      printf("variables on %s: %u, %lld bytes\n", task_text(b, task), count, (long long)bytes);
  }
}

/* Also what is wrong with entries that a build leaves out. */
static status lower_each(struct build *b) {
  status s = pipeline_run_part(b, "lower", "lower");
  for (uint32_t i = 0; i < b->dropped.count; i++)
    printf("entry %s: %s\n", b->dropped.items[i].entry, b->dropped.items[i].reason);
  return s;
}

status command_check(struct build *b) {
  TRY(pipeline_run_part(b, "read", "tables"));
  status unsupported = report_unsupported(b);
  const char *text = arena_strdup(&b->arena, status_text());
  TRY(pipeline_run_part(b, "strategy", "place"));
  report_placement(b);
  if (unsupported != OK)
    return fail(unsupported, "%s", text);
  TRY(lower_each(b));
  TRY(pipeline_run_part(b, "restore", "spread"));
  cuts_print(b, stdout);
  TRY(pipeline_run_part(b, "loops", "partition"));
  report_variables(b);
  for (uint32_t i = 0; i < b->entries.count; i++)
    for (uint32_t p = 0; p < b->entries.items[i].parts.count; p++)
      report_part(b, &b->entries.items[i], &b->entries.items[i].parts.items[p]);
  printf("can be built\n");
  return OK;
}
