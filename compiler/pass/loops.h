/* loops.h: what the files of the pass `loops` share. */
#ifndef TFC_COMPILER_PASS_LOOPS_H
#define TFC_COMPILER_PASS_LOOPS_H

#include "compiler/build.h"

/* Each is of the loops of one flow, not of those in their regions; true: the flow is another one now. */

/* What a loop saves on a stack or a list for the loop of its gradient: what does not change is taken in front of both, the rest are rows
 * of one array. */
void loops_join_saves(struct flow *flow);

/* Elements of tensor lists that a loop takes or sets one after the other are rows of arrays; a list of one element is that. */
bool loops_list_rows(const struct build *build, struct flow *flow);

/* The same of tensor arrays, whose handles all calls share. */
bool loops_array_rows(const struct build *build, struct flow *flow);

/* Variables to which each turn adds a product: one product behind the loop. */
bool loops_sum_behind(const struct build *build, struct flow *flow);

/* Products of rows with what all turns read: one product in front of the loop, or behind it. */
bool loops_move_products(const struct build *build, struct flow *flow);

/* A new variable of the loop that does not change: `outer`, as the body's parameter that comes back. */
value_id loop_add_invariant(struct flow *flow, flow_id loop, value_id outer);
/* A constant of the flow `from` in another one. */
value_id loop_copy_constant(struct flow *to, const struct flow *from, value_id v);

#endif
