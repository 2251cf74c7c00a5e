/* lanes.h: what of a part must come before what: the partial order behind the order of nodes, and who has to do with other tasks.
 *
 * Parts with a node that may wait for other steps run by counts: a node runs when all before it have run. In the others,
 * which run in order, neighbours of which none needs another are marked as a group: their kernels may run side by side.
 */
#ifndef TFC_COMPILER_LANES_H
#define TFC_COMPILER_LANES_H

#include "ir/flow/flow.h"

enum lane {
  LANE_COMPUTE,
  LANE_COMMUNICATION, /* it sends, or waits for others */
};

struct lanes {
  uint32_t *at; /* before[at[n] .. at[n + 1]): what node n comes after, by edges, sizes and the order's needs; each once */
  flow_id *before;
  uint8_t *lane;   /* per node: enum lane */
  uint32_t *group; /* per node: a number that neighbours in the order share whose kernels may run side by side; 0: none */
  bool by_counts;  /* an outer flow */
};

/* INTERNAL when the partial order contradicts the order, or members of a group need each other. */
status lanes_verify(const struct flow *flow);
/* The text for --emit lanes. */
void lanes_print(const struct flow *flow, struct arena *arena, FILE *out);

#endif
