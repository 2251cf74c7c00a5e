/* replicas.c: in a replicated build each replica has copies of its own of what lies at the replicated job, and the chief's `init` reaches
 * the chief's alone: the entry `local_init`, which every other replica runs, does of `init` what makes those copies.
 *
 * Where each variable lies is known once all nodes are placed. What such a copy is made of may change other tasks, too (a first value
 * behind that of a parameter server's variable): those have run `init`, and are not changed again (runtime/process/initialise.c).
 */
#include <stdlib.h>

#include "compiler/entries.h"
#include "compiler/entry_defaults.h"
#include "compiler/pass/pass.h"

/* What of `init` lies at each replica, and `local` does not do already. What has to be fed only the phase `init` can give. */
static void first_values_add(const struct graph *graph, const struct entry_spec *init, struct entry_spec *local) {
  bool *wanted = entry_mark_needed(graph, init), *done = entry_mark_needed(graph, local), *needs_feed = entry_mark_fed(graph, init);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    if (wanted[i] && !done[i] && !needs_feed[i] && node->task == TASK_SELF && node_gives_first_value(node))
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
