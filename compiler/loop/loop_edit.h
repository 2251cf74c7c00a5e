/* loop_edit.h: new variables and rows of a `while`. */
#ifndef TFC_COMPILER_LOOP_EDIT_H
#define TFC_COMPILER_LOOP_EDIT_H

#include "compiler/build.h"

/* A new variable of the loop that does not change: `outer`, as the body's parameter that comes back. */
value_id loop_add_invariant(struct flow *flow, flow_id loop, value_id outer);
/* A constant of the flow `from` in another one. */
value_id loop_copy_constant(struct flow *to, const struct flow *from, value_id v);
/* The array of which the body's value v is a row, one for each of so many turns (NO_DIM: not known). */
value_id loop_add_row_out(struct flow *flow, flow_id loop, value_id v, dim turns);
/* The body's value that is a row of the array in each turn. */
value_id loop_add_row_in(struct flow *flow, flow_id loop, value_id array);
/* Arrays whose rows a loop only hands on are those that it takes; true: somebody takes another one now. */
bool loops_hand_rows_on(const struct build *build, struct flow *flow);

#endif
