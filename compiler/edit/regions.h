/* regions.h: what a strategy must see of a step is brought out of regions. */
#ifndef TFC_COMPILER_REGIONS_H
#define TFC_COMPILER_REGIONS_H

#include "compiler/build.h"

/* An `if` that changes variables becomes guarded nodes and merges, and a loop that does the turns that it makes, where those are known and
 * few, so that each of its updates can be where its variable lives. A variable that a region only reads is read before it and handed
 * in. */
void regions_open(struct build *build, struct flow *flow);

#endif
