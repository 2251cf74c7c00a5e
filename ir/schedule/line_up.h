/* line_up.h: a factor of a product copied into the order in which sums read it.
 *
 * What was transposed before a product lies apart for it: a copy in front costs little beside a product that reads it many times. */
#ifndef TFC_IR_SCHEDULE_LINE_UP_H
#define TFC_IR_SCHEDULE_LINE_UP_H

#include "ir/kernel/kernel.h"

/* For a kernel of one nest that is a contraction of constant extents, the sum over one axis: the same kernel, but for its second factor,
 * which it reads from a further argument, the last: there it lies by batches, terms and columns. `*copy` makes that argument (b) of the one
 * where the factor lies (a), number `*buffer` of k. NULL: it is no such kernel, or the factor lies so already.
 * Owner: the arena. */
struct kernel *kernel_line_up(const struct kernel *k, struct arena *arena, struct kernel **copy, uint32_t *buffer);

#endif
