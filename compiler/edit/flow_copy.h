/* flow_copy.h: the nodes of a region once more, in another flow. */
#ifndef TFC_COMPILER_FLOW_COPY_H
#define TFC_COMPILER_FLOW_COPY_H

#include "ir/flow/flow.h"

struct flow_copy {
  const struct flow *from;
  struct flow *to;
  value_id *value; /* per value of `from`: what it is in `to`; of its parameters the caller says it */
  flow_id *node;   /* per node of `from` */
  dim *symbol;     /* per symbol: what it is in the copy; NO_DIM, or NULL: itself */
};
void flow_copy_begin(struct flow_copy *c, const struct flow *from, struct flow *to);
/* From now on: symbols s of the first `count` with own[s] are other ones in the copy, under the same assumptions. */
void flow_copy_new_symbols(struct flow_copy *c, const bool *own, uint32_t count);
/* Nodes are copied in their order, each with regions of its own, which share kernels and constants. */
struct flow_node *flow_copy_node(struct flow_copy *c, flow_id of, flow_id *id);
void flow_copy_end(struct flow_copy *c);

/* Guards of a copied node: those `around`, outermost, then its own. */
void flow_copy_guards(const struct flow_copy *c, struct flow_node *copy, const struct flow_guard *around, uint32_t count);

#endif
