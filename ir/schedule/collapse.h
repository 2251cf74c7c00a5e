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
 *   - two loops, both par or both red, the inner one the only statement of the outer, become one where every buffer that is indexed by
 *     either is indexed by both, by each variable as it is, in adjacent dimensions of which the inner loop covers the second; these become
 *     one dimension. Neither variable may be used otherwise. Extents are constants; or, with `sizes`, a size around what is open, too, or
 *     short: it becomes a new size of the kernel, behind those that it has, and *sizes says of what it is the product. (Around what is long
 *     an open number of images stays a loop of its own: others may share it.)
 * The values stored, the order of sums, buffers, their order and numbers of elements, sizes and name stay. `k` itself where there is
 * nothing of that, or where it is scheduled.
 * Owner: the arena. */
struct size_product {
  int64_t factor;
  uint32_t sizes[LIMIT_RANK]; /* of k, ascending */
  int count;
};
struct new_sizes {
  struct size_product *items; /* the arena's */
  uint32_t count;
};
struct kernel *kernel_collapse(struct kernel *k, struct new_sizes *sizes, struct arena *arena);

#endif
