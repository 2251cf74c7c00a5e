/* feed_ranks.h: which ranks fed tensors can have, said by the ops that take them. */
#ifndef TFC_IR_GRAPH_FEED_RANKS_H
#define TFC_IR_GRAPH_FEED_RANKS_H

#include "ir/graph/registry.h"

/* For each of the edges `feeds` the ranks with which every node of `needed` (a bool per node) that takes it, or what has its rank, works
 * (the registry's op_arg.ranks and rank_of); every rank where nothing is said, or where two nodes want what no tensor has. A fed edge is
 * not what its own node would make of its inputs. A node of a branch that no step takes counts, too: what comes out is what is likely.
 * `out`: feed_count sets. One walk against the order of the nodes; registry_check has been there. */
status feed_ranks(const struct graph *graph, const bool *needed, const struct edge *feeds, uint32_t feed_count, struct arena *arena,
                  rank_set *out);

#endif
