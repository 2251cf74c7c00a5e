/* over_turns.h: what a kernel makes in each turn of a loop, made at once: as one sum over all turns, or for each of them; or a part of it.
 *
 * A weight that all turns of a loop read has a gradient that is the sum of a product in each turn. Where both factors of all turns are
 * there after the loop, one product is the whole sum: it has as many times the terms, and its result is written once. */
#ifndef TFC_IR_SCHEDULE_OVER_TURNS_H
#define TFC_IR_SCHEDULE_OVER_TURNS_H

#include "ir/kernel/kernel.h"

/* How many turns: a constant, or a size that the kernel does not have yet, DIM_OF_SIZE(k->size_count), and then has. */

/* For a kernel of one nest that stores a sum of products as it is: the same kernel, but for the arguments with is_row, which have one more
 * dimension in front, of so many turns, and are summed up over it too, outermost. NULL: it is no such kernel, or no factor is a row.
 * *terms: that one turn adds up for an element, sizes taken for 1: a step may have few rows, and one sum of all turns loses nothing by
 * many. Sums are added up in another order than turn by turn. Owner: the arena. */
struct kernel *kernel_over_turns(const struct kernel *k, const bool *is_row, kernel_dim turns, struct arena *arena, int64_t *terms);

/* For a kernel of one nest that is a sum of products: what all turns make, its result with one more dimension in front as its rows have.
 * Each sum is what it was. NULL: it is no such kernel, no factor is a row or all are, or a dimension too many. *uses: how often one turn
 * uses an element of a factor that is no row, sizes taken for a usual batch, as the results of all turns take room and come and go;
 * *steady: the argument of that. Owner: the arena. */
struct kernel *kernel_each_turn(const struct kernel *k, const bool *is_row, kernel_dim turns, struct arena *arena, int64_t *uses,
                                uint32_t *steady);

/* For a kernel of one nest that stores a sum of products of single or double precision as it is, of which one loop of terms walks through
 * all of dimension `dim`, a constant, of argument `part`: the same sum over `count` terms from `from` on, where that argument has those
 * alone, and the other factor has all. NULL: it is no such kernel. Owner: the arena. */
struct kernel *kernel_of_terms(const struct kernel *k, uint32_t part, int dim, int64_t from, int64_t count, struct arena *arena);

#endif
