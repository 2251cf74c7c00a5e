/* kernel_nests.h: the nests of a kernel: its statements at the top, one after the other, and the par loops whose iterations may be dealt to
 * threads. Facts, for whoever chooses how they run and for targets, which must see the same.
 *
 * Owner: the arena given. */
#ifndef TFC_IR_KERNEL_KERNEL_NESTS_H
#define TFC_IR_KERNEL_KERNEL_NESTS_H

#include "ir/kernel/kernel_uses.h"

#define CHAIN_MAX 12
#define NESTS_MAX 20
#define CONDITIONS_MAX 6

/* A par loop at the top, with those that are all of its body, up to one of vectors. Neighbours that index every buffer together run as one:
 * a group. */
struct chain {
  struct stmt *loops[CHAIN_MAX]; /* outermost first */
  int count;
  struct stmt *inside; /* the body of the last one */
  struct chain_group {
    int first, last;
  } groups[CHAIN_MAX];
  int group_count;
};
/* The loop whose variable runs over all iterations of a group; the others' is 0 then. */
static inline struct stmt *group_loop(const struct chain *c, int group) { return c->loops[c->groups[group].last]; }

/* A statement at the top, or under `if`s over sizes there. Of one with marks (stmt_is_scheduled) the chain is its loops of tasks, each a
 * group; one with marks may have none. */
struct kernel_nest {
  struct stmt *body; /* of which `next` is another's */
  bool is_scheduled;
  struct chain chain;
  struct nest_condition { /* where one does not hold, it does not run */
    expr_id value;
    bool inverted;
  } conditions[CONDITIONS_MAX];
  int condition_count;
};
/* The groups of a chain without tasks anew, after its loops have changed places. */
void chain_group(const struct kernel_uses *uses, struct chain *chain);
/* At most NESTS_MAX. 0: the kernel's statements are no nests, they run one after the other in one thread. */
int kernel_nests(const struct kernel_uses *uses, struct kernel_nest *out);
/* Whether a block of nests, what a task runs, has one beside others that no step has made, as those do that were joined. */
bool block_joins_nests(const struct stmt *block);

#endif
