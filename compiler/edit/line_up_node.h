/* line_up_node.h: a node in front of a product that copies its second factor into the order of its sums (ir/schedule/line_up.h). */
#ifndef TFC_COMPILER_LINE_UP_NODE_H
#define TFC_COMPILER_LINE_UP_NODE_H

#include "ir/flow/flow.h"

/* Appends the copying node to the flow; `n`, a copy of the product's node, gets the kernel that reads what it makes, and its arguments. The
 * caller puts them into the flow (clone_append) and sorts it. False: the kernel is no such product, or its factor lies so already. */
bool node_line_up(struct flow *f, struct flow_node *n);

#endif
