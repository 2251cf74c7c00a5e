/* flow_kernel.h: new kernels at the end of a flow. */
#ifndef TFC_COMPILER_FLOW_KERNEL_H
#define TFC_COMPILER_FLOW_KERNEL_H

#include "ir/flow/flow.h"

/* A kernel of one result, like `result`, which reads in[i] by its argument i; named after a node. */
struct flow_node *flow_append_kernel(struct flow *f, const struct flow_node *named, uint32_t task, struct kernel *kernel,
                                     const value_id *in, struct flow_value result);
/* A copy of a, or, with b, what `op` makes of an element of each; both have a's dtype and shape, which has a rank. */
value_id flow_append_map(struct flow *f, const struct flow_node *named, uint32_t task, const char *name, enum scalar_op op, value_id a,
                         value_id b);

#endif
