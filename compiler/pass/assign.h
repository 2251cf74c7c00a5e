/* assign.h: what is made only to be assigned is made in the variable.
 *
 * `%3 = kernel K(out %3)` and `assign varN(%3)` become `kernel K(out varN)`, where the assignment stands; when K takes the variable's old
 * value, too, each element for the one that it stores, `kernel K(inout varN)`.
 */
#ifndef TFC_COMPILER_ASSIGN_H
#define TFC_COMPILER_ASSIGN_H

#include "ir/flow/flow.h"

/* Of one flow (not its regions: call it for each of them), which partition has cut; vars: the build's. Memory is the flow's arena. */
void assign_in_place(struct flow *flow, const struct flow_var *vars, uint32_t var_count);

#endif
