/* plan.h: where the values of a part are while it runs, and for how long.
 *
 * A value whose sizes are known when the part starts, and that does not leave it, has a place in the step's arena; its life is an
 * interval of positions, which count the instructions of a part in order, those of regions inside their node. The runtime lays
 * out the intervals when it knows the sizes (runtime/memory/arena_plan.h). Other values are tensors of their own.
 */
#ifndef TFC_COMPILER_PLAN_H
#define TFC_COMPILER_PLAN_H

#include "ir/flow/flow.h"
#include "runtime/program/program.h"

struct plan_place {
  uint8_t storage;      /* enum program_storage; of a value that is there */
  bool is_there;        /* something makes it */
  value_id root;        /* whose memory it is: itself, or what it is an alias of */
  uint32_t first, last; /* of a root: positions of its first and last use */
};
struct plan {
  struct plan_place *places; /* per value */
  uint32_t *at;              /* per node: its position; 0: it does nothing while the part runs */
  uint32_t positions;        /* of an outer flow: lives are positions below this */
  bool by_counts;            /* an outer flow whose nodes run when what they need has run: all lives are the whole step's */
};

/* Steps that a client feeds and fetches in more than one call: every part is planned once more, by counts and without sizes. */
bool entry_has_partial_runs(const struct entry *entry);
/* INTERNAL when a value is used out of its life, or one that leaves the part lies in the arena. */
status plan_verify(const struct flow *flow);
/* The text for --emit plan. */
void plan_print(const struct flow *flow, struct arena *arena, FILE *out);

#endif
