/* pipeline.c: the passes in order, as a table; the driver checks what they need, and dumps. */
#include "compiler/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "compiler/entries.h"
#include "compiler/pass/lanes.h"
#include "compiler/pass/layout.h"
#include "compiler/pass/order.h"
#include "compiler/pass/pass.h"
#include "compiler/pass/plan.h"
#include "compiler/pass/schedule.h"
#include "compiler/read/read.h"
#include "ir/graph/registry.h"

status pass_read(struct build *b) {
  b->model.tags = b->options.tags;
  TRY(model_read(b->options.graph_path, &b->arena, &b->model));
  if (b->options.cluster_path)
    TRY(cluster_read(b->options.cluster_path, &b->arena, &b->cluster));
  else
    cluster_local(&b->arena, &b->cluster);
  b->default_task = cluster_default_task(&b->cluster);
  return cpus_read(b->options.cpu ? b->options.cpu : "native", b->options.math == MATH_STRICT, &b->arena, &b->cpus);
}
static status pass_check(struct build *b) { return registry_check(b->model.graph); }
status pass_resolve(struct build *b) { return entries_resolve(b); }
static bool is_replicated(const struct build *b) { return build_replicated(b) && b->strategy == STRATEGY_NONE; }
static bool gathers_rows(const struct build *b) { return b->gathers.count > 0; }

const struct pass passes[] = {
  {"read", pass_read, 0, FACT_GRAPH, 0, .after = "the graph, the cluster and the CPUs are in memory"},
  {"datasets", pass_datasets, FACT_GRAPH, 0, 0, .after = "datasets that parse their elements are maps"},
  {"check", pass_check, FACT_GRAPH, FACT_CHECKED, 0, .after = "every node fits its op's signature: counts, dtypes, attributes"},
  {"methods", pass_methods, FACT_CHECKED, 0, 0, .after = "functions of a SavedModel without a signature are called in the graph"},
  {"entries", pass_resolve, FACT_CHECKED, FACT_ENTRIES, 0, .after = "every entry names existing tensors and operations"},
  {"tables", pass_tables, FACT_CHECKED | FACT_ENTRIES, 0, 0, .after = "a SavedModel's tables have their contents after `init`"},
  {"strategy", pass_strategy, FACT_CHECKED | FACT_ENTRIES, 0, 0, .after = "with --strategy the graph is one replica's of the cluster"},
  {"place", pass_place, FACT_CHECKED | FACT_ENTRIES, FACT_PLACED, 0, .after = "every node has a task and a device"},
  {"replicas", pass_replicas, FACT_PLACED, 0, 0, .after = "each replica initialises what it has of its own", .when = is_replicated},
  {"lower", pass_lower, FACT_PLACED, FACT_FLOW, 0, .after = "every entry is a flow of core ops; what is known is folded"},
  {"restore", pass_restore, FACT_FLOW, FACT_INITIALS, 0, .after = "a SavedModel's variables have their values"},
  {"dead", pass_dead, FACT_FLOW, FACT_LIVE, 0, .after = "every node is needed by a fetch, an effect or a size"},
  {"fed", pass_fed, FACT_LIVE, 0, 0, .after = "no step needs a placeholder that is not fed"},
  {"means", pass_means, FACT_LIVE, FACT_MEANS, 0, .after = "with --strategy it is known what of a step is the mean of all workers'"},
  {"rows", pass_lower, FACT_MEANS, 0, FACT_LIVE | FACT_MEANS, .after = "rows of gradients are those of all workers", .when = gathers_rows},
  {"rows_dead", pass_dead, FACT_FLOW, FACT_LIVE, 0, .after = "of that, too, every node is needed", .when = gathers_rows},
  {"rows_means", pass_means, FACT_LIVE, FACT_MEANS, 0, .after = "of that, too, it is known what is a mean", .when = gathers_rows},
  {"spread", pass_spread, FACT_LIVE | FACT_MEANS, 0, FACT_MEANS,
   .after = "with --strategy variables, their updates and the means of gradients have their tasks"},
  {"loops", pass_loops, FACT_LIVE, 0, 0, .after = "loops save nothing that does not change, and the rest in arrays"},
  {"fuse", pass_fuse, FACT_LIVE, FACT_FUSED, 0, .after = "kernels that need not store in between are one"},
  {"sweep", pass_dead, FACT_FUSED, 0, 0, .after = "nothing is left of what fusing made unneeded"},
  {"partition", pass_partition, FACT_FUSED, FACT_PARTS, 0, .after = "each task has its own flow; cuts are send and receive"},
  {"hold", pass_hold, FACT_PARTS, 0, 0, .after = "what a part changes comes after what it receives"},
  {"assign", pass_assign, FACT_PARTS, 0, 0, .after = "what is made only to be assigned is made in the variable"},
  {"collapse", pass_collapse, FACT_PARTS, 0, 0,
   .after = "loops over groups and inside of them are two, those that walk through the same memory one"},
  {"layout", pass_layout, FACT_PARTS, 0, 0, .after = "what stays the same for many reads lies as contractions read it", layout_verify,
   layout_print},
  {"join", pass_join, FACT_PARTS, 0, 0,
   .after = "kernels of which each row needs only the same row of others are one, where that saves memory"},
  {"line_up", pass_line_up, FACT_PARTS, 0, 0, .after = "factors of products lie as those read them, where a copy is worth it"},
  {"order", pass_order, FACT_PARTS, FACT_ORDER, 0, .after = "nodes have an order, and what must stay of a variable is a copy", order_verify,
   order_print},
  {"families", pass_families, FACT_PARTS, 0, 0, .after = "kernels that differ in numbers which their code does not hang on are one"},
  {"share", pass_share, FACT_PARTS, 0, 0, .after = "no kernel is there in more than a few sizes"},
  {"schedule", pass_schedule, FACT_PARTS, 0, 0, .after = "kernels that gain by it are scheduled", scheduled_verify, scheduled_print},
  {"lanes", pass_lanes, FACT_ORDER, FACT_LANES, 0, .after = "what must come before what is known", lanes_verify, lanes_print},
  {"plan", pass_plan, FACT_ORDER | FACT_LANES, FACT_PLAN, 0, .after = "every value has a place, for a time", plan_verify, plan_print},
};
const uint32_t pass_count = sizeof passes / sizeof passes[0];

/* ---- text ---- */

static void print_graph(FILE *out, const struct build *b, bool placed) {
  const struct graph *g = b->model.graph;
  for (uint32_t i = 0; i < g->nodes.count; i++) {
    const struct node *n = &g->nodes.items[i];
    fprintf(out, "%s = %s(", n->name, n->op);
    for (uint32_t j = 0; j < n->input_count; j++)
      fprintf(out, "%s%s:%u", j ? ", " : "", g->nodes.items[n->inputs[j].node].name, n->inputs[j].port);
    for (uint32_t j = 0; j < n->control_count; j++)
      fprintf(out, "%s^%s", j || n->input_count ? ", " : "", g->nodes.items[n->controls[j]].name);
    fprintf(out, ")");
    if (placed && n->assigned)
      fprintf(out, " %s", n->assigned);
    fprintf(out, "\n");
  }
}

static void print_kernels(FILE *out, struct build *b, const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (n && n->op == FLOW_KERNEL)
      fprintf(out, "; #%u\n%s", id, kernel_print(n->kernel, &b->arena));
    for (uint32_t r = 0; n && r < n->region_count; r++)
      print_kernels(out, b, n->branches[r]);
  }
}

static void print_flows(FILE *out, struct build *b, bool are_parts) {
  for (uint32_t i = 0; i < b->entries.count; i++) {
    const struct entry *e = &b->entries.items[i];
    for (uint32_t p = 0; p < (are_parts ? e->parts.count : 1); p++) {
      const struct flow *f = are_parts ? e->parts.items[p].flow : e->flow;
      fprintf(out, "entry %s on %s\n%s\n", part_entry_name(b, e), are_parts ? part_task_name(b, e->parts.items[p].task) : "all tasks",
              flow_print(f, &b->arena));
      print_kernels(out, b, f);
      fputs("\n", out);
    }
  }
}

void pipeline_print(struct build *b, unsigned facts, FILE *out) {
  if (facts & FACT_FLOW)
    print_flows(out, b, facts & FACT_PARTS);
  else if (facts & FACT_GRAPH)
    print_graph(out, b, facts & FACT_PLACED);
}

bool pipeline_print_pass(struct build *b, const char *name, FILE *out) {
  for (uint32_t i = 0; i < pass_count; i++)
    if (strcmp(passes[i].name, name) == 0 && passes[i].print) {
      part_print(b, passes[i].print, out);
      return true;
    }
  return false;
}

static status dump(struct build *b, uint32_t index, unsigned facts) {
  if (mkdir(b->options.dump_phases, 0777) != 0 && errno != EEXIST)
    return fail(DATA_LOSS, "%s: %s", b->options.dump_phases, strerror(errno));
  const char *path = arena_printf(&b->arena, "%s/%02u_%s.txt", b->options.dump_phases, index, passes[index].name);
  FILE *out = fopen(path, "w");
  if (!out)
    return fail(DATA_LOSS, "%s: %s", path, strerror(errno));
  if (!pipeline_print_pass(b, passes[index].name, out))
    pipeline_print(b, facts, out);
  fclose(out);
  return OK;
}

static status verify_flow(const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    status s = n && n->op == FLOW_KERNEL ? kernel_verify(n->kernel) : OK;
    if (s != OK)
      return status_prefix(s, "%s (%s): ", n->name, n->tf_op);
    for (uint32_t r = 0; n && r < n->region_count; r++)
      TRY(verify_flow(n->branches[r]));
  }
  return OK;
}

/* Kernels are verified after each pass from lowering on: a fault of ours is caught where it was made. */
static status verify(const struct build *b, unsigned facts) {
  for (uint32_t i = 0; i < b->entries.count; i++) {
    const struct entry *e = &b->entries.items[i];
    if (!(facts & FACT_PARTS))
      TRY(verify_flow(e->flow));
    for (uint32_t p = 0; facts & FACT_PARTS && p < e->parts.count; p++)
      TRY(verify_flow(e->parts.items[p].flow));
  }
  return OK;
}

static status verify_part_flow(struct build *b, const struct part_ref *part, struct flow *flow, void *self) {
  const struct pass *pass = self;
  (void)b, (void)part;
  return pass->verify(flow);
}

static uint32_t pass_number(const char *name) {
  uint32_t i = 0;
  while (i < pass_count && strcmp(passes[i].name, name) != 0)
    i++;
  return i;
}

static status run_pass(struct build *b, const struct pass *pass) {
  TRY(pass->run(b));
  return pass->verify ? part_each_flow(b, verify_part_flow, (void *)pass) : OK;
}

static bool is_needed(const struct build *b, const struct pass *pass) { return !pass->when || pass->when(b); }

status pipeline_run_part(struct build *b, const char *first, const char *last) {
  for (uint32_t i = pass_number(first); i <= pass_number(last) && i < pass_count; i++)
    if (is_needed(b, &passes[i]))
      TRY(run_pass(b, &passes[i]));
  return OK;
}

status pipeline_run(struct build *b) {
  unsigned facts = 0;
  for (uint32_t i = 0; i < pass_count; i++) {
    if (!is_needed(b, &passes[i]))
      continue;
    if ((facts & passes[i].needs) != passes[i].needs)
      return fail(INTERNAL, "pass %s is out of order", passes[i].name);
    TRY(run_pass(b, &passes[i]));
    facts = (facts | passes[i].gives) & ~passes[i].breaks;
    if (facts & FACT_FLOW)
      TRY(verify(b, facts));
    if (b->options.dump_phases)
      TRY(dump(b, i, facts));
  }
  return OK;
}
