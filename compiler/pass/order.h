/* order.h: the order in which a flow's nodes run.
 *
 * Node numbers grow in one topological order of the whole entry, and every part keeps it: then parts that run in order and
 * wait for each other's values cannot wait in a circle. Only updates of variables move: a READ is the variable's memory
 * itself, so an update waits until the values read before it have been used, as long as nothing needs the update first;
 * where that is not possible, the value read is copied (a snapshot) right before the update.
 */
#ifndef TFC_COMPILER_ORDER_H
#define TFC_COMPILER_ORDER_H

#include "ir/flow/flow.h"

struct order_need {
  flow_id before, after; /* `before` must have run when `after` starts, whether or not an edge says so too */
};
struct order_release {
  flow_id after;  /* the last node that uses */
  value_id value; /* this memory (flow_root) */
};
struct order {
  VEC(flow_id) nodes;                /* every node once */
  VEC(struct order_need) needs;      /* what the order keeps for the sake of variables */
  VEC(struct order_release) release; /* in the order of nodes */
};

/* Orders one flow (not its regions: call it for each of them); may add snapshot nodes. Memory is the flow's arena. */
status order_flow(struct flow *flow, struct order *out);
/* Notes after which node each value is not used any more (order_release.c). */
void order_releases(const struct flow *flow, struct order *order);
/* INTERNAL when a node runs before what it needs, twice or not at all, or uses what was given up. */
status order_verify(const struct flow *flow);
/* The text for --emit order. */
void order_print(const struct flow *flow, struct arena *arena, FILE *out);

#endif
