/* rank_set.h: the ranks that a tensor may have. */
#ifndef TFC_IR_GRAPH_RANK_SET_H
#define TFC_IR_GRAPH_RANK_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

/* Bit r stands for rank r, 0 .. LIMIT_RANK. */
typedef uint64_t rank_set;
_Static_assert(LIMIT_RANK < 64, "a set of ranks has a bit for each");
#define RANKS_ALL (~UINT64_C(0))
static inline rank_set ranks_of(int rank) { return UINT64_C(1) << rank; }
static inline rank_set ranks_from(int rank) { return RANKS_ALL << rank; } /* that and all above */
static inline bool ranks_have(rank_set ranks, int rank) { return ranks >> rank & 1; }
static inline int ranks_lowest(rank_set ranks) { return __builtin_ctzll(ranks); }
static inline bool ranks_are_many(rank_set ranks) { return (ranks & (ranks - 1)) != 0; }

#endif
