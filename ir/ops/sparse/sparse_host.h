/* sparse_host.h: outputs of host calls that are sparse tensors. Private to ir/ops. */
#ifndef TFC_IR_OPS_SPARSE_SPARSE_HOST_H
#define TFC_IR_OPS_SPARSE_SPARSE_HOST_H

#include "ir/lower/lower.h"

/* Outputs first, first + 1, first + 2 of the call: indices [n, rank], values [n], shape [rank]; n is a new symbol. */
status op_sparse_outputs(struct op_call *c, struct flow_node *n, uint32_t first, dim rank);

#endif
