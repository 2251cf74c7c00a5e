/* unroll.h: a loop of a known number of turns as its turns, one after the other. */
#ifndef TFC_COMPILER_UNROLL_H
#define TFC_COMPILER_UNROLL_H

#include "ir/flow/flow.h"

#define UNROLL_NODES_MAX 20000 /* of all turns together */

/* Whether it can be: how many turns it makes is a number, not so many that the flow would be too large, and its variables have the same
 * shapes in all of them. */
bool loop_may_unroll(const struct flow *flow, const struct flow_node *loop);
/* Of such a loop: takes it out of the flow, whose nodes are no more in order then (flow_sort). What a turn does to variables, and its
 * calls, come after those of the turn before. */
void loop_unroll(struct flow *flow, flow_id loop);

#endif
