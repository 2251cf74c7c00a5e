/* part.h: an op that is made of others. Private to ir/ops. */
#ifndef TFC_IR_OPS_PART_H
#define TFC_IR_OPS_PART_H

#include "ir/lower/lower.h"

/* Another op's builder with these inputs and one output; it reads this node's attributes. */
status op_part(struct op_call *c, op_builder build, uint32_t count, const struct bound *in, struct bound *out);
/* The same of an op with several. */
status op_part_outputs(struct op_call *c, op_builder build, uint32_t count, const struct bound *in, uint32_t outputs, struct bound *out);
static inline struct bound op_bound(value_id v) { return (struct bound){.value = v}; }

#endif
