/* registry.h: the signatures of TensorFlow's ops (ir/tf_ops.txt, made by scripts/extract_ops.py from TensorFlow itself):
 * argument names and types, attributes with types, allowed values and defaults. From it come: whether an op exists,
 * how many inputs and outputs a node has, their dtypes, the ranks that inputs can have, and what an attribute is when the graph leaves
 * it out. */
#ifndef TFC_IR_GRAPH_REGISTRY_H
#define TFC_IR_GRAPH_REGISTRY_H

#include "ir/graph/graph.h"
#include "ir/graph/rank_set.h"

struct op_arg {
  const char *name;
  uint8_t dtype;           /* fixed type, or 0 */
  const char *type_attr;   /* T, or NULL */
  const char *number_attr; /* N: that many of the type, or NULL */
  const char *list_attr;   /* a list(type) attribute, or NULL */
  bool is_ref;
  rank_set ranks; /* of an input: those that TensorFlow takes, whatever else it gets; every rank where it does not say */
  int rank_of;    /* of an output: the input whose rank it has; -1: it is not said */
};
static inline bool op_arg_is_list(const struct op_arg *arg) { return arg->number_attr || arg->list_attr; }
struct op_attr {
  const char *name;
  const char *type; /* "type", "int", "list(shape)" ... */
  bool has_default;
  struct attr_value value;            /* the default */
  const uint8_t *allowed;             /* allowed dtypes, 0-terminated, or NULL */
  const char *const *allowed_strings; /* NULL-terminated, or NULL */
  bool has_minimum;
  int64_t minimum;
};
struct op_def {
  const char *name;
  const struct op_arg *inputs, *outputs;
  const struct op_attr *attrs;
  uint16_t input_count, output_count, attr_count;
  bool is_stateful;
};

/* The signature; NULL when TensorFlow has no such op. The table is parsed once, on first use. */
const struct op_def *registry_find(const char *op);
uint32_t registry_count(void);
const struct op_def *registry_at(uint32_t index);

/* An attribute of a node: the node's, else the registry's default, else NULL. */
const struct attr_value *node_attr(const struct node *node, const char *name);
/* With a value when the attribute is absent altogether. */
int64_t node_attr_int(const struct node *node, const char *name, int64_t otherwise); /* also bool and type */
double node_attr_float(const struct node *node, const char *name, double otherwise);
const char *node_attr_string(const struct node *node, const char *name, const char *otherwise);
const struct attr_shape *node_attr_shape(const struct node *node, const char *name); /* NULL: absent, or of unknown rank */
/* What the graph itself says of an output, in the attribute `_output_shapes`; NULL: nothing, or not even the rank. */
const struct attr_shape *node_output_shape(const struct node *node, uint32_t port);

typedef VEC(uint8_t) dtype_list;
/* The dtypes of one argument of a signature (an op's, a function's), appended: a list has several. INVALID_ARGUMENT naming the
 * node: an attribute that decides it is absent or wrong. RESOURCE_EXHAUSTED: the list has become longer than LIMIT_NODE_INPUTS. */
status registry_arg_dtypes(const struct node *node, const struct op_arg *arg, dtype_list *out);
/* Checks every node of the graph against its signature: sets def, input_dtypes, output_dtypes, output_count.
 * NOT_FOUND: op that TensorFlow has not (naming node and op); INVALID_ARGUMENT: count or dtype of inputs, missing attribute,
 * value not allowed, slot that does not exist: naming the node, the op and what disagrees. */
status registry_check(struct graph *graph);
/* The same for one node, after those that its inputs come from. */
status registry_check_node(struct graph *graph, struct node *node);
/* NOT_FOUND: the node's op is none of TensorFlow's and no function of the graph; with the names that are nearest. */
status registry_unknown_op(const struct graph *graph, const struct node *node);

#endif
