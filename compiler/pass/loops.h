/* loops.h: what the files of the pass `loops` share. */
#ifndef TFC_COMPILER_PASS_LOOPS_H
#define TFC_COMPILER_PASS_LOOPS_H

#include "compiler/build.h"

/* What a loop saves on a stack or a list for the loop of its gradient: what does not change is taken in front of both, the rest are rows
 * of one array. */
void loops_join_saves(struct flow *flow);

/* A new variable of the loop that does not change: `outer`, as the body's parameter that comes back. */
value_id loop_add_invariant(struct flow *flow, flow_id loop, value_id outer);

#endif
