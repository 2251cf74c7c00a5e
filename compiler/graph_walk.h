/* graph_walk.h: what depends on what in a graph, along data and control edges. */
#ifndef TFC_COMPILER_GRAPH_WALK_H
#define TFC_COMPILER_GRAPH_WALK_H

#include "ir/graph/graph.h"

/* The nodes that `seeds` depend on, themselves included: one bool for each node, to be freed. */
bool *ancestors_mark(const struct graph *graph, const uint32_t *seeds, uint32_t count);
/* Those that depend on nodes that `starts` marks, themselves included. */
bool *descendants_mark(const struct graph *graph, const bool *starts);
/* Per node: whether what it gives is of a turn of a TensorFlow 1 loop (Enter .. Exit). The caller frees it. */
bool *loops_mark(const struct graph *graph);

#endif
