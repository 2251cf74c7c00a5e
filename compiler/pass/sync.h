/* sync.h: the mean of each gradient, and updates that are made once for all workers. */
#ifndef TFC_COMPILER_SYNC_H
#define TFC_COMPILER_SYNC_H

#include "compiler/pass/gradients.h"

uint32_t sync_workers(const struct build *build); /* how many there are */

/* Puts the mean over all workers in the place of each gradient, for what is not made of gradients itself. The means meet where the
 * variable lives; of variables that each worker has for itself on the first worker. `keys`: the numbers of all means of the build, by
 * text. */
void sync_means(struct build *build, struct entry *entry, struct gradients *gradients, struct map *keys);
/* Afterwards: the steps meet in rounds where the means are made, and where variables are on servers what changes them there is done by one
 * step of all workers'. `reach`: of the flow as it was before the means. */
status sync_rounds(struct build *build, struct entry *entry, const struct reach *reach);

bool sync_meets(const struct flow_node *node); /* the steps of all workers meet in it: what it gives is the same for all, or the round's */
bool sync_is_mean(const struct flow_node *node); /* a value of all workers' */
bool sync_gives(const struct flow_node *node);   /* here a part has brought all that it has for the round's means */

#endif
