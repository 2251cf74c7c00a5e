/* kernel_clone.h: a kernel made anew from others: one inlined into another's loads, or applied to another's result. */
#ifndef TFC_COMPILER_KERNEL_CLONE_H
#define TFC_COMPILER_KERNEL_CLONE_H

#include "compiler/edit/producer_form.h"

/* The kernel under construction. */
struct clone {
  struct flow *flow;
  struct kernel *kernel;
  VEC(struct flow_arg) args;
  VEC(dim) sizes;
  uint32_t updates;  /* a variable's number + 1, of which `old` are values from before: they are loaded from where it is updated; 0: none */
  VEC(value_id) old; /* the caller's */
};

void clone_begin(struct clone *cl, struct flow *flow, const char *name);
/* The consumer, with the producer's expression in the place of loads from `buffer` (UINT32_MAX: no producer); scalars that
 * are known while compiling become constants. */
void clone_inline(struct clone *cl, const struct flow_node *consumer, uint32_t buffer, const struct producer *p);
/* The producer, storing what the map `c` makes of its results; of these the ones that it shall keep, too, by the producer's buffer. */
void clone_epilogue(struct clone *cl, const struct producer *p, const struct producer *c, const bool *keep);
/* The sum `p` for those elements only that the map `c` loads, each once, and stores what it makes of them. */
void clone_part(struct clone *cl, const struct producer *p, const struct producer *c, uint32_t buffer);
/* The kernel with its result, buffer `result`, in the variable that it updates. */
void clone_update(struct clone *cl, const struct flow_node *node, uint32_t result);
/* The kernel of a node that updates variables, on copies: of its buffer b with made[b] that value is stored, old[b] at first. */
void clone_copies(struct clone *cl, const struct flow_node *update, const value_id *old, const value_id *made);
/* The node's kernel behind what is there: where it loads what that stores, it loads it there. False: it knows that in another shape;
 * nothing is appended. */
bool clone_append(struct clone *cl, const struct flow_node *node);
/* Puts kernel, arguments, sizes, inputs and outputs into the node. */
void clone_finish(const struct clone *cl, struct flow_node *node);
/* The same for a node of the flow, which becomes the producer of all that the kernel makes. */
void clone_place(const struct clone *cl, struct flow *f, flow_id id);
/* Instead of these: nothing comes of the kernel. */
void clone_drop(struct clone *cl);
/* Whether a value is a number known while compiling. */
bool clone_constant(const struct flow *flow, value_id v);

#endif
