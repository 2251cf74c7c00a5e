/* entry_runners.h: what a TensorFlow session would run on threads of its own: the entries of queue runners. */
#ifndef TFC_COMPILER_ENTRY_RUNNERS_H
#define TFC_COMPILER_ENTRY_RUNNERS_H

#include <stdio.h>

#include "compiler/build.h"

/* Looks for a round of SyncReplicasOptimizer; its graph is one worker's, and is replicated where there are several.
 * Before any entry. */
void entry_round_find(struct build *build);
/* Of the default entries: a worker's step ends with its token, and leaves the taking of gradients to the chief's
 * runner. */
void entry_round_mend(struct build *build);
/* Adds the queue runners that the entries need, with an entry for each of their operations, and `late_init`. A runner
 * whose operation is run by an entry already is left to that. Those that would need a feed are left out, and said to
 * be. */
void entry_runners_add(struct build *build);
/* Who runs what beside the phases, a line for each; nothing where there are none. */
void entry_runners_print(FILE *out, const struct build *build);

#endif
