/* collapse.h: loops that are one: a kernel with fewer axes that walks through the same memory in the same order.
 *
 * Loops over images, rows and columns of a convolution of one tap are the rows of a product; an elementwise kernel over a shape is one over
 * a vector. Lowering writes a loop for each dimension of a value, and fusing needs it so; what chooses schedules asks for products.
 * Linalg's and oneDNN's collapsed dimensions are the same idea. */
#ifndef TFC_IR_SCHEDULE_COLLAPSE_H
#define TFC_IR_SCHEDULE_COLLAPSE_H

#include "ir/kernel/kernel.h"

/* The same kernel, in which
 *   - dimensions of one element are gone from buffers, and loops of one turn around others of their kind,
 *   - a loop and the one that alone is in it, both of one kind and of constant extents, are one where every buffer that moves with one of
 *     them moves with both, by neighbouring dimensions that the inner one fills; these are one dimension then.
 * The values stored, the order of sums, buffers, their order and numbers of elements, sizes and name stay. `k` itself where it has nothing
 * of that, or is scheduled.
 * Owner: the arena. */
struct kernel *kernel_collapse(struct kernel *k, struct arena *arena);

#endif
