/* collapse.h: a kernel with fewer loops and dimensions that walks through the same memory in the same order.
 *
 * Loops over images, rows and columns of a convolution of one tap are the rows of a product; an elementwise kernel over a shape is one over
 * a vector. Lowering writes a loop for each dimension of a value, and fusing needs it so; what chooses schedules asks for products.
 * Linalg's and oneDNN's collapsed dimensions are the same idea. */
#ifndef TFC_IR_SCHEDULE_COLLAPSE_H
#define TFC_IR_SCHEDULE_COLLAPSE_H

#include "ir/kernel/kernel.h"

/* The same kernel, in which
 *   - what the ranges of loops decide is gone: tests and clamps of places that are always inside,
 *   - dimensions of one element are gone from buffers, and so are loops of one turn directly around another loop of their kind,
 *   - two loops of constant extents, both par or both red, the inner one the only statement of the outer, become one where every buffer
 *     that is indexed by either is indexed by both, by each variable as it is, in adjacent dimensions of which the inner loop covers the
 *     second; these become one dimension. Neither variable may be used otherwise.
 * The values stored, the order of sums, buffers, their order and numbers of elements, sizes and name stay. `k` itself where there is
 * nothing of that, or where it is scheduled.
 * Owner: the arena. */
struct kernel *kernel_collapse(struct kernel *k, struct arena *arena);

#endif
