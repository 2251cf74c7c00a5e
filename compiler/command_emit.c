/* command_emit.c: tfc build --emit KIND. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "compiler/commands.h"
#include "compiler/pass/schedule_candidates.h"
#include "compiler/pipeline.h"
#include "targets/target.h"

static status emit_task(struct build *b, const struct target *t, const struct emitted *e, const char *kind, uint32_t task) {
  bool is_cpu = strcmp(t->name, "cpu") == 0;
  const struct cluster_task *named = &b->cluster.tasks.items[task];
  for (uint32_t i = 0; i < (is_cpu ? b->cpus.count : 1); i++) {
    const struct target_options options = {.cpu = b->cpus.items[i].name, .gpu = b->options.gpu, .variant = i, .math = b->options.math};
    const struct target_unit unit = {.kernels = is_cpu ? e->scheduled[i].items : e->kernels.items, .count = e->kernels.count};
    char *text;
    TRY(t->emit(&options, &unit, kind, &b->arena, &text));
    printf("%s task %s_%u", is_cpu ? ";" : "//", named->job, named->index);
    if (is_cpu && b->cpus.count > 1)
      printf(" for %s", b->cpus.items[i].name);
    printf("\n%s", text);
  }
  return OK;
}

static status emit_code(struct build *b, const char *target, const char *kind) {
  for (uint32_t task = 0; task < b->cluster.tasks.count; task++) {
    struct emitted e = {0};
    TRY(build_emit(b, task, &e));
    TRY(emit_task(b, target_find(target), &e, kind, task));
  }
  return OK;
}

static void print_dot(const struct build *b) {
  printf("digraph tfc {\n");
  const struct graph *g = b->model.graph;
  for (uint32_t i = 0; i < g->nodes.count; i++) {
    const struct node *n = &g->nodes.items[i];
    printf("  n%u [label=\"%s\\n%s\\n%s\"];\n", i, n->name, n->op, n->assigned ? n->assigned : "");
    for (uint32_t j = 0; j < n->input_count; j++)
      printf("  n%u -> n%u;\n", n->inputs[j].node, i);
    for (uint32_t j = 0; j < n->control_count; j++)
      printf("  n%u -> n%u [style=dashed];\n", n->controls[j], i);
  }
  printf("}\n");
}

status command_emit(struct build *b) {
  const char *kind = b->options.emit;
  static const char *const kinds[] = {"graph", "ir",   "layout", "order", "schedule", "candidates", "lanes",
                                      "plan",  "llvm", "asm",    "cuda",  "ptx",      "dot"};
  struct nearest nearest;
  char text[256];
  nearest_begin_words(&nearest, kind, kinds, sizeof kinds / sizeof *kinds);
  if (strcmp(nearest.best[0].name, kind) != 0)
    return fail(INVALID_ARGUMENT, "--emit %s: %s", kind, nearest_text(&nearest, "there are: ", text, sizeof text));
  TRY(pipeline_run(b));
  if (strcmp(kind, "graph") == 0)
    pipeline_print(b, FACT_GRAPH | FACT_PLACED, stdout);
  else if (strcmp(kind, "ir") == 0)
    pipeline_print(b, FACT_GRAPH | FACT_FLOW | FACT_PARTS, stdout);
  else if (strcmp(kind, "candidates") == 0)
    return candidates_print(b, stdout);
  else if (strcmp(kind, "dot") == 0)
    print_dot(b);
  else if (strcmp(kind, "cuda") == 0 || strcmp(kind, "ptx") == 0)
    return emit_code(b, "cuda", kind);
  else if (!pipeline_print_pass(b, kind, stdout))
    return emit_code(b, "cpu", kind);
  return OK;
}
