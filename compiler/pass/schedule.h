/* schedule.h: the order in which a flow's nodes run.
 *
 * Node numbers grow in one topological order of the whole entry, and every part keeps it: then parts that run in order and
 * wait for each other's values cannot wait in a circle. Only updates of variables move: a READ is the variable's memory
 * itself, so an update waits until the values read before it have been used, as long as nothing needs the update first;
 * where that is not possible, the value read is copied (a snapshot) right before the update.
 */
#ifndef TFC_COMPILER_SCHEDULE_H
#define TFC_COMPILER_SCHEDULE_H

#include "ir/flow.h"

struct schedule_need {
  flow_id before, after; /* `before` must have run when `after` starts, although no edge says so */
};
struct schedule {
  VEC(flow_id) order;              /* every node once */
  VEC(struct schedule_need) needs; /* what the order keeps beside the flow's edges: for parts that run by counts */
};

/* Orders one flow (not its regions: call it for each of them); may add snapshot nodes. Memory is the flow's arena. */
status schedule_flow(struct flow *flow, struct schedule *out);
/* Whether a node, or a node in its regions, updates the variable (var: its number). */
bool flow_node_updates(const struct flow_node *node, uint32_t var);
/* Whether a node, or a node in its regions, updates a variable or is a call that others may see. */
bool flow_node_changes(const struct flow_node *node);

#endif
