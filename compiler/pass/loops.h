/* loops.h: what the files of the pass `loops` share. */
#ifndef TFC_COMPILER_PASS_LOOPS_H
#define TFC_COMPILER_PASS_LOOPS_H

#include "compiler/build.h"

/* What a loop saves on a stack or a list for the loop of its gradient: what does not change is taken in front of both, the rest are rows
 * of one array. */
void loops_join_saves(struct flow *flow);

/* Variables to which each turn adds a product: one product behind the loop. */
void loops_sum_behind(const struct build *build, struct flow *flow);

/* A new variable of the loop that does not change: `outer`, as the body's parameter that comes back. */
value_id loop_add_invariant(struct flow *flow, flow_id loop, value_id outer);
/* The array of which the body's value v is a row, one for each of so many turns (NO_DIM: not known). */
value_id loop_add_row_out(struct flow *flow, flow_id loop, value_id v, dim turns);
/* A constant of the flow `from` in another one. */
value_id loop_copy_constant(struct flow *to, const struct flow *from, value_id v);
/* Whether a value of the body is the memory of a variable, which the loop itself may change: at the end of a turn it is not what it was. */
bool loop_is_variable_memory(const struct flow *body, value_id v);

#endif
