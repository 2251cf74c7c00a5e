/* gradient.h: the gradient of a function of the library, or of a single op, as a graph: what TensorFlow's SymbolicGradient runs.
 *
 * The gradient of f(x...) -> y... is an instance (ir/graph/function.h) with the arguments x... dy... and the results dx...: f's body
 * again, and behind it, in reverse, a SymbolicGradient of each node whose gradients have arrived, AddN where several meet, zeros
 * where none does. So one call takes one function or op apart, and what is nested is derived when it is lowered, if anything
 * needs it. The gradients of ops are rows of gradients.def. The gradient of a resource is a float tensor. One thread.
 */
#ifndef TFC_IR_GRAPH_GRADIENT_H
#define TFC_IR_GRAPH_GRADIENT_H

#include "ir/graph/function.h"

/* The gradient of the function or op that `f` names, for its attributes. NOT_FOUND: an op without a rule. INVALID_ARGUMENT: one whose
 * gradient is none, SymbolicGradient itself, and whatever function_instantiate reports; UNIMPLEMENTED where TensorFlow says so. A function
 * for which the library itself has a gradient is differentiated all the same: whoever calls asks function_gradient first. */
status gradient_instantiate(const struct graph *library, const struct attr_func *f, const char *prefix, struct arena *arena,
                            struct instance *out);

/* gradient_rules.c: of an op alone; see above. */
status gradient_of_op(const struct graph *library, const struct attr_func *f, const char *prefix, struct arena *arena,
                      struct instance *out);
/* Whether nothing comes back through this op. */
bool gradient_ends_at(const char *op);

#endif
