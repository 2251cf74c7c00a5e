/* flow_edit.h: what passes that rewrite a whole flow share: inputs of any node by number, the variables that it touches, new nodes in
 * order.
 *
 * Inputs are a node's values to read: those of a kernel's IN buffers, else its inputs, then the predicates of its guards. */
#ifndef TFC_COMPILER_FLOW_EDIT_H
#define TFC_COMPILER_FLOW_EDIT_H

#include "ir/flow/flow.h"

uint32_t node_input_count(const struct flow_node *node);
value_id node_input(const struct flow_node *node, uint32_t i); /* NO_VALUE: an output, or a variable */
void node_replace_input(struct flow_node *node, value_id from, value_id to, struct arena *arena);
bool node_takes(const struct flow_node *node, value_id v);
/* How often nodes of the flow and its results take the value; *user: the last node that does, or 0. */
uint32_t flow_use_count(const struct flow *flow, value_id v, flow_id *user);
/* In a flow all uses of a value, results too, become uses of another. */
void flow_replace_uses(struct flow *flow, value_id from, value_id to);
/* Whether both run under the same conditions. */
bool nodes_same_guards(const struct flow_node *a, const struct flow_node *b);

enum touch { TOUCH_NONE, TOUCH_READ, TOUCH_UPDATE };
/* How the node itself touches a variable; regions are not looked at. */
enum touch node_touch(const struct flow_node *node, uint32_t i, uint32_t *var);
uint32_t node_touch_count(const struct flow_node *node); /* numbers i to ask for; some are TOUCH_NONE */
bool node_updates(const struct flow_node *node);
/* The variables that a node and what is in its regions touch: calls back for each; and those of all nodes of a flow. */
void node_touches(const struct flow_node *node, void (*found)(void *self, uint32_t var, enum touch touch), void *self);
void flow_touches(const struct flow *flow, void (*found)(void *self, uint32_t var, enum touch touch), void *self);
/* Whether the node, or one in its regions, updates a variable. */
bool node_updates_inside(const struct flow_node *node);
/* Whether both, or what is in their regions, touch a variable. */
bool nodes_share_variable(const struct flow_node *a, const struct flow_node *b);

bool node_is_call(const struct flow_node *node, const char *host);                       /* of the runtime, by name */
const struct attr_value *node_call_attr(const struct flow_node *node, const char *name); /* NULL: it has none of that name */
bool node_is_free_call(const struct flow_node *node, const char *host);                  /* under no condition */
/* Whether the node, or one in its regions, calls the runtime: it may have effects beside variables and failures. */
bool node_calls(const struct flow_node *node);
/* Whether the node, or one in its regions, updates a variable or is a call that others may see. */
bool node_changes(const struct flow_node *node);

/* A node at the end of the flow with one output like `like`. */
struct flow_node *flow_append(struct flow *f, enum flow_op op, const struct flow_node *named, uint32_t task, flow_id *id);
/* What was appended since the flow had so many nodes and values is gone; nothing that stays may take it. */
void flow_take_back(struct flow *f, uint32_t nodes, uint32_t values);
value_id flow_append_output(struct flow *f, struct flow_node *node, flow_id id, struct flow_value like);
void node_guard(struct flow_node *node, struct flow_guard guard, struct arena *arena); /* the new guard is the outermost */
void node_follow(struct flow_node *node, flow_id before);                              /* a control edge, once */
void node_follow_no_more(struct flow_node *node, flow_id before);
/* By node: whether another one comes after it by a control edge. The caller's to free. */
bool *flow_followed(const struct flow *f);
/* Takes a node out that has no effect of its own. What comes after it then comes after its controls and what made its inputs; `followed` is
 * flow_followed's answer, kept true. */
void flow_drop_node(struct flow *f, flow_id id, bool *followed);
void node_make_noop(struct flow_node *node); /* it only keeps its place in the order of others */
/* The kernel in the place of the node's own, told these numbers as sizes behind those that it has. */
void node_take_told(struct flow *f, struct flow_node *node, struct kernel *kernel, const int64_t *told, uint32_t count);

/* Numbers the nodes anew, so that each comes after what it needs; otherwise they keep their order. */
void flow_sort(struct flow *f);
/* The same, but nodes that are marked come after all others that do not need them. */
void flow_sort_last(struct flow *f, const bool *last);

#endif
