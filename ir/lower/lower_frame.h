/* lower_frame.h: one graph being lowered: the top level, or the body of a function. Private to lowering. */
#ifndef TFC_IR_LOWER_LOWER_FRAME_H
#define TFC_IR_LOWER_LOWER_FRAME_H

#include "ir/lower/lower.h"

struct instance;

struct frame {
  const struct graph *graph;
  struct bound **bound; /* per node: what its outputs became; NULL until lowered or fed */
  bool *lowered;
  flow_id *token;
  bool *token_known;
  flow_id *data_token; /* what a data edge from the node does not order by itself */
  bool *data_token_known, *has_effect;
  const bool *needed;        /* per node: it is lowered, and so are its inputs */
  const struct edge *wanted; /* wanted_count outputs that somebody outside takes */
  uint32_t wanted_count;
  bool **used; /* per node and output: a needed node, or somebody outside, takes it; NULL until somebody asks */
  struct frame *parent;
  const struct node *call;      /* of a function: the node, of the parent's graph, that calls it; or NULL */
  const char *function;         /* whose body this is; NULL: none */
  size_t prefix;                /* its nodes' names without as many characters are those of the body */
  const char *state;            /* of a function: what its nodes' state is named after; NULL: the graph's own nodes */
  bool calls_share;             /* the calls in it are of one body, with one state */
  struct frame *older;          /* made before this one */
  const struct guards **guards; /* per node */
  bool *dead;                   /* per node: known never to run */
  struct loops *loops;          /* of TensorFlow 1; NULL: none */
  uint32_t scope;               /* the loop whose body this frame is; 0: the outermost */
  VEC(flow_id) entry_controls;  /* of a function: what must have run before any effect in it */
  VEC(flow_id) effects;         /* all effects so far: the call's own effect is all of them */
  uint32_t task;                /* of a function's nodes: the call's task */
};

struct frame *frame_create(struct lower *lw, const struct graph *graph);
/* The newest one is none of the lowering's any more. */
void frame_drop(struct lower *lw, struct frame *fr);
/* Nodes are added to a region's flow; returns the flow around it, for the end. */
struct flow *region_enter(struct lower *lw, struct flow *region);
void region_leave(struct lower *lw, struct flow *outer);
struct bound *frame_outputs(struct lower *lw, struct frame *fr, uint32_t node);
/* Whether a node that is lowered, or somebody outside, takes the output. */
bool frame_output_used(struct frame *fr, const struct node *node, uint32_t port);
/* Whether all that take it are nodes of this op. */
bool frame_only_takes(const struct frame *fr, const struct node *node, uint32_t port, const char *op);
status frame_lower_node(struct lower *lw, struct frame *fr, uint32_t index);
/* UNIMPLEMENTED where an edge is a feed without a rank for which none is tried yet: lw->found.wants_feed then names it. */
status lower_check_feed(struct lower *lw, const struct frame *fr, struct edge e);
/* lower_guard.c: the conditions of a node whose inputs have these; both may be NULL. */
const struct guards *guards_join(struct lower *lw, const struct guards *a, const struct guards *b);
const struct guards *guards_add(struct lower *lw, const struct guards *g, struct flow_guard one);
/* The one of two values that is there, as `dims`; bool constants. */
value_id op_merge(struct op_call *c, value_id predicate, value_id when_false, value_id when_true, int rank, const dim *dims);
value_id op_bool(struct op_call *c, bool value);
/* lower_alternatives.c: a call of the node's builder, for each of the ranks that its inputs may have. */
status lower_each_alternative(struct op_call *c);
/* lower_gather.c: inputs of the call that lower_options.gathers asks for. */
void lower_gather_inputs(struct op_call *c);
/* lower.c: the call itself. */
status lower_call_node(struct op_call *c);
/* Two values of which the step has one, where the predicate decides. */
struct bound bound_alternatives(struct op_call *c, value_id predicate, struct bound when_false, struct bound when_true);
/* A value of whatever rank as alternatives, one for each of `ranks` that the scalar `rank` may say. */
status lower_ranks(struct op_call *c, value_id whole, value_id rank, rank_set ranks, struct bound *out);
/* Whether a size is that of an input; the call for each value that the size can have: op_const_size. */
bool lower_has_size(struct op_call *c, dim size);
status lower_for_each_size(struct op_call *c, dim size);
/* lower_variable.c: the variable's value now; UNIMPLEMENTED with lw->wants.var where it has one of several ranks, and the call for each. */
status lower_read_variable(struct op_call *c, struct bound b, value_id *out);
status lower_each_rank(struct op_call *c);
bool lower_variable_has_ranks(struct op_call *c, struct bound b);
value_id lower_read_any_rank(struct op_call *c, struct bound b);
bool lower_may_have_changed(const struct lower *lw, uint32_t var);
/* What is assigned to the variable has this rank. */
void lower_note_rank(struct op_call *c, uint32_t var, int rank);
/* The value of whatever rank: for a fetch. */
status lower_any_rank(struct op_call *c, struct bound b, value_id *out);
/* v without the axes `drop`, and without those of the set `late` whose size the step finds to be 1. */
status lower_squeezed(struct op_call *c, value_id v, uint32_t late, const bool *drop, struct bound *out);
/* lower_loop.c: the loops of a graph (frames of Enter and Exit); NULL when it has none. Errors name the node. */
status loops_find(struct lower *lw, const struct graph *graph, const uint32_t *order, struct loops **out);
/* Lowers the needed nodes of a scope with its loops, each as one While. */
status loops_lower_scope(struct lower *lw, struct frame *fr, const uint32_t *order, const bool *needed);
/* The needed nodes of the frame's graph, in order. */
status frame_lower_nodes(struct lower *lw, struct frame *fr, const uint32_t *order);

/* What a region computes from its arguments. */
struct region_body {
  const void *self;
  status (*build)(struct op_call *inner, const void *self, const struct bound *args, uint32_t arg_count, struct bound *rets,
                  uint32_t ret_count);
};
/* lower_control.c: an `if` over the number `choice` with these branches: its captures are c->in from 1 on, its results c->out. */
status lower_branches(struct op_call *c, value_id choice, const struct region_body *bodies, uint32_t count);
/* Whether such a branch can be lowered: what it makes is thrown away. */
status lower_branch_trial(struct op_call *c, const struct region_body *body);
/* lower_choice.c: the call for each value that the axis, input `input`, can have in -count .. count-1. */
status lower_for_each_axis(struct op_call *c, uint32_t input, int64_t count);

/* lower_function.c: lowers the body of a library function in place of the call: inputs are the call's, outputs are set. */
status lower_call_function(struct op_call *c, const char *function, const struct attr *attrs, uint32_t attr_count);
/* lower_implementation.c: the same for a call in the place of whose function TensorFlow may run another one (ir/graph/implementation.h). */
status lower_call_selected(struct op_call *c, const char *function, const struct attr *attrs, uint32_t attr_count);
/* The same for a function that TensorFlow does not optimise before it runs: what it calls, it calls as written. */
status lower_call_as_written(struct op_call *c, const struct attr_func *function);
/* Whether TensorFlow's optimizer sees the graph that is being lowered. */
bool lower_is_optimized(const struct lower *lw);
/* lower_optimizer.c: lowers the node as what the optimizer makes of it. *done: false where that is the node itself, and nothing was
 * lowered. */
status lower_optimized(struct op_call *c, struct frame *fr, uint32_t index, bool *done);
void lower_note_softmax(struct op_call *c, struct frame *fr, uint32_t index);
/* Lowers a body that was made for this call in place of it: inputs are the call's, outputs are set. */
status lower_call_body(struct op_call *c, const struct instance *body);
/* The body of a function in the flow that is being built: what its arguments are bound to, what its results became. Effects of
 * the body come after the call's controls and are appended to c->body. */
struct attr_func;
status lower_body_as_written(struct op_call *c, const struct attr_func *function, const struct bound *args, uint32_t arg_count,
                             struct bound *rets, uint32_t ret_count);
/* The body of a function of scalars in a flow of its own, *out, which is none of the entry's: the values of its arguments and results. */
status lower_scalars(struct op_call *c, const struct attr_func *function, const enum dtype *dtypes, uint32_t arg_count, value_id *args,
                     uint32_t ret_count, value_id *rets, struct flow **out);
status lower_body(struct op_call *c, const char *function, const struct attr *attrs, uint32_t attr_count, const struct bound *args,
                  uint32_t arg_count, struct bound *rets, uint32_t ret_count);
/* INVALID_ARGUMENT: the placeholder must be fed. */
status lower_refuse_unfed(const struct node *placeholder);
/* The shape that a fed tensor has: dims may be new symbols. */
status lower_feed_shape(struct lower *lw, const struct graph *graph, struct edge feed, int *rank, dim *dims);

#endif
