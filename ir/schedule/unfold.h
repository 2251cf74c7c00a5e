/* unfold.h: a kernel whose contractions have a loop over groups where their indices only divided.
 *
 * A grouped convolution has one loop over the channels of its result, fused with what follows it, and finds a channel's group by a
 * quotient. As a loop over groups and one inside of a group, it is a batch of convolutions side by side, and all that is known of those
 * holds for it. */
#ifndef TFC_IR_SCHEDULE_UNFOLD_H
#define TFC_IR_SCHEDULE_UNFOLD_H

#include "ir/kernel/kernel.h"

#define UNFOLD_LEAST 4 /* channels of a group: fewer are no vector */

/* The same kernel, in which a par loop of constant extent around a sum of products, by whose quotient with a constant a factor is indexed
 * together with a term of the sum, is two: over the quotient, and over the remainder. Where all indices in a dimension of a buffer are such
 * sums of a multiple and what is below it, the dimension is two as well. The values stored, the order of sums, buffers, their order and
 * numbers of elements, sizes and name stay. `k` itself where there is nothing of that.
 * Owner: the arena. */
struct kernel *kernel_unfold(struct kernel *k, struct arena *arena);
/* A copy in the arena whose one nest begins with par loops of these extents, to which its own are cut, and dimensions as above. NULL: its
 * loops do not end where these do. */
struct kernel *kernel_cut_loops(const struct kernel *k, const int64_t *extents, int count, struct arena *arena);
/* The par loops of constant extent with which a kernel of one nest begins, one the only statement of another; gives how many. The first one
 * may turn as often as a size says: its extent then is that dimension (DIM_OF_SIZE). */
int kernel_outer_loops(const struct kernel *k, const struct stmt *loops[LIMIT_RANK], int64_t extents[LIMIT_RANK]);

#endif
