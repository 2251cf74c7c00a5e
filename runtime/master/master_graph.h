/* master_graph.h: is a client's graph a part of the one that was built? Any thread. */
#ifndef TFC_RUNTIME_MASTER_MASTER_GRAPH_H
#define TFC_RUNTIME_MASTER_MASTER_GRAPH_H

#include "runtime/master/master.h"
#include "base/wire.h"

/* Checks a GraphDef node by node: name, op, inputs and attributes must be those of the build; devices, and attributes that only one side
 * has, may differ (clients write defaults out). known: a byte for each node of the build, nonzero for those the session has; the new ones
 * are set when all is well. FAILED_PRECONDITION: nodes that the build has not, by name; INVALID_ARGUMENT: a node that the session has
 * already. */
status master_graph_add(const struct master_config *config, struct wire graph_def, uint8_t *known);

/* UINT32_MAX: no such node. The name need not end with NUL. */
uint32_t master_node_find(const struct master_config *config, const char *name, size_t size);

#endif
