/* function.h: functions of a graph's library, and making a graph from one for given attributes.
 *
 * A function is kept as it came: nodes whose inputs are texts ("arg", "node:out_arg:0", "^node") and whose attributes may
 * be placeholders for attributes of the caller. An instance is an ordinary graph: arguments are its first nodes (op
 * "_Arg", each element of a list one), every edge is resolved, every node is checked against the registry and is named
 * "prefix/name". Functions that
 * the body calls are not expanded: whoever lowers the instance instantiates them in turn and bounds the depth
 * (LIMIT_NESTING): a function may call itself. Owner: the arena given. One thread.
 */
#ifndef TFC_IR_GRAPH_FUNCTION_H
#define TFC_IR_GRAPH_FUNCTION_H

#include "ir/graph/graph.h"

struct function_node {
  const char *name, *op, *device;
  const struct attr *attrs; /* sorted by name */
  uint32_t attr_count;
  const char *const *inputs; /* texts */
  uint32_t input_count;
};

/* What struct function's `body` points to. */
struct function_body {
  const struct function_node *nodes;
  uint32_t node_count;
  const char *const *ret_sources;     /* one for each ret of the signature: "node:out_arg:0", "arg"; of a list "node:out_arg" */
  const char *const *control_sources; /* nodes that run whether or not a ret needs them */
  uint32_t control_count;
  const struct attr *defaults; /* of the signature's attributes, sorted by name */
  uint32_t default_count;
};

struct instance {
  struct graph *graph; /* nodes 0 .. arg_count-1 are the arguments; its library is the caller's */
  uint32_t arg_count;
  const struct edge *rets; /* ret_count of them, in the order of the signature, lists expanded */
  uint32_t ret_count;
  const uint32_t *controls; /* nodes that must have run when the call is done */
  uint32_t control_count;
};

/* The function of that name; NULL when the library has none. */
const struct function *function_find(const struct graph *graph, const char *name);
/* The name of the function that the library says is the gradient of this one: from its arguments and the gradients of its
 * results to the gradients of its arguments. NULL: none. */
const char *function_gradient(const struct graph *graph, const char *name);
/* Whether an argument or result of the signature is a list: then argument i of an instance is not argument i of it. */
bool function_has_lists(const struct function *function);

/* The attributes with which a call instantiates it: the caller's (sorted by name), and the signature's defaults for what the
 * caller does not give; sorted, in the arena. */
void function_attrs(const struct function *function, const struct attr *given, uint32_t given_count, struct arena *arena,
                    const struct attr **attrs, uint32_t *attr_count);
/* An instance for the attributes of the caller (sorted by name). INVALID_ARGUMENT naming function and node: an input that
 * is none, an attribute that nobody gives, dtypes that disagree (registry_check). */
status function_instantiate(const struct graph *library, const struct function *function, const struct attr *attrs, uint32_t attr_count,
                            const char *prefix, struct arena *arena, struct instance *out);
/* How many results an instance for these attributes has. */
status function_ret_count(const struct function *function, const struct attr *attrs, uint32_t attr_count, struct arena *arena,
                          uint32_t *out);
/* What else makes such graphs (ir/graph/gradient.c, ops/control/ops_map_function.c): an empty one that shares the library, and an
 * argument. */
struct graph *function_graph(const struct graph *library, struct arena *arena);
/* Appends a checked node, named after its op unless it has a name; its inputs are copied, its attributes too, and sorted. *out: its
 * number. */
status function_add_node(struct graph *graph, const char *prefix, struct node node, uint32_t *out);
struct node function_arg_node(const char *name, int dtype, uint32_t index, struct arena *arena);
/* Frees what is not in the arena. */
void instance_deinit(struct instance *instance);

#endif
