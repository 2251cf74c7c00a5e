/* update_values.h: what an update would make of the variables that it changes, as values. */
#ifndef TFC_COMPILER_UPDATE_VALUES_H
#define TFC_COMPILER_UPDATE_VALUES_H

#include "ir/flow/flow.h"

/* Whether the node is a kernel that changes variables of which nothing else is made, and reads nothing but them and values. */
bool update_has_values(const struct flow_node *update);
/* Appends a node to the flow that makes the new values of such an update's variables, where old[b] is what the variable of the kernel's
 * buffer b holds before; made[b] becomes what it holds then. Both NO_VALUE for other buffers. */
struct flow_node *update_append_values(struct flow *f, const struct flow_node *update, uint32_t task, const value_id *old, value_id *made);

#endif
