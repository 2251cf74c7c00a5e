/* host_call.h: ops that are one call into the runtime: the host function has the op's name, takes all its inputs and
 * attributes (runtime/host/host.def), and gives its outputs. */
#ifndef TFC_IR_LOWER_HOST_CALL_H
#define TFC_IR_LOWER_HOST_CALL_H

#include "ir/lower/lower.h"

enum host_kind {
  HOST_PURE,    /* depends on its inputs alone */
  HOST_LOOKS,   /* depends on what ran before it (files, tables), but changes nothing: may be dropped */
  HOST_CHANGES, /* must run once a step, in order */
  HOST_WAITS,   /* the same, and may wait for another step or task (queues): the step runs by dependency counts */
};

/* Adds the call with all inputs and attributes of the node; `host`: NULL for the op's own name. Afterwards c->in[i].value is what
 * the call takes, also where input i is a variable. */
status op_host(struct op_call *c, enum host_kind kind, const char *host, struct flow_node **out);
/* The whole of an op that its row describes (ops_host.c). */
status build_host(struct op_call *c);
/* Only the attributes, for a node that was made otherwise; and one more of our own. */
void op_host_attrs(struct op_call *c, struct flow_node *n);
void op_host_add_attr(struct op_call *c, struct flow_node *n, const char *name, struct attr_value value);
/* The same with an attribute that the compiler has given the node: its name begins with an underscore, which the call's has not. */
void op_host_pass_attr(struct op_call *c, struct flow_node *n, const char *name);
/* The next output of the call, which is output i of the op; handles become scalars of dtype resource. */
void op_host_output(struct op_call *c, struct flow_node *n, uint32_t i, int rank, const dim *dims);
/* An output whose shape an attribute says: unknown sizes are symbols. UNIMPLEMENTED when the rank is not known. */
status op_host_output_shaped(struct op_call *c, struct flow_node *n, uint32_t i, const struct attr_shape *shape);

/* A tensor of whatever rank, for each of those that it may have: the step asks the tensor. */
status op_any_rank(struct op_call *c, value_id whole, rank_set ranks, struct bound *out);
#define ANY_RANK ((rank_set)0x7f) /* 0 .. 6 dimensions */

#endif
