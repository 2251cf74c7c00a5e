/* replicas.c: in a replicated build each replica has copies of its own of what lies at the replicated job, and the chief's `init` reaches
 * the chief's alone: the entry `local_init`, which every other replica runs, does of `init` what makes those copies.
 *
 * Where each variable lies is known once all nodes are placed. What such a copy is made of may change other tasks, too (a first value
 * behind that of a parameter server's variable): those have run `init`, and are not changed again (runtime/process/initialise.c).
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/entries.h"
#include "compiler/entry_defaults.h"
#include "compiler/pass/pass.h"

/* Gives a variable, a table or an iterator what it starts with. */
static bool is_first_value(const struct node *node) {
  static const char *const ops[] = {"Assign",
                                    "AssignVariableOp",
                                    "InitializeTable",
                                    "InitializeTableV2",
                                    "InitializeTableFromTextFile",
                                    "InitializeTableFromTextFileV2",
                                    "LookupTableImport",
                                    "LookupTableImportV2",
                                    "MakeIterator"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(node->op, ops[i]) == 0)
      return true;
  return false;
}

static bool *fed_mark(const struct graph *graph, const struct entry_spec *spec) {
  bool *fed = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *fed);
  struct edge edge;
  memset(fed, 0, graph->nodes.count + 1);
  for (uint32_t i = 0; i < spec->feeds.count; i++)
    if (graph_find_output(graph, spec->feeds.items[i], &edge) == OK)
      fed[edge.node] = true;
  bool *needs_feed = descendants_mark(graph, fed);
  free(fed);
  return needs_feed;
}

/* What of `init` lies at each replica, and `local` does not do already. What has to be fed only the phase `init` can give. */
static void first_values_add(const struct graph *graph, const struct entry_spec *init, struct entry_spec *local) {
  bool *wanted = entry_mark_needed(graph, init), *done = entry_mark_needed(graph, local), *needs_feed = fed_mark(graph, init);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    if (wanted[i] && !done[i] && !needs_feed[i] && node->task == TASK_SELF && is_first_value(node))
      vec_push(&local->targets, node->name);
  }
  free(wanted);
  free(done);
  free(needs_feed);
}

/* Not with a strategy: its variables have no place yet, and then either the parameter servers or all replicas, who all run `init`. */
status pass_replicas(struct build *b) {
  const struct entry_spec *init = entry_find(b, "init");
  struct entry_spec *local = entry_find(b, "local_init"), made = {.name = "local_init"};
  bool is_users = local && (b->options.entries.count || local->feeds.count || local->fetches.count); /* as he named it */
  if (!init || is_users)
    return OK;
  first_values_add(b->model.graph, init, local ? local : &made);
  if (made.targets.count)
    vec_push(&b->specs, made);
  return OK;
}
