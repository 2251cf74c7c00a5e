/* lower_walk.h: what the walk over nodes calls itself by: a call of a function lowers its nodes, a node with inputs of several ranks is
 * lowered for each, a branch is lowered in its region. The files of ir/lower that define these are one circle, and include this; the
 * others lie below it, and do not. For those and for builders. */
#ifndef TFC_IR_LOWER_LOWER_WALK_H
#define TFC_IR_LOWER_LOWER_WALK_H

#include "ir/lower/lower_frame.h"

struct attr_func;

/* lower.c: the needed nodes of the frame's graph, in order. */
status frame_lower_nodes(struct lower *lw, struct frame *fr, const uint32_t *order);
/* One of them; the call of its row. */
status frame_lower_node(struct lower *lw, struct frame *fr, uint32_t index);
status lower_call_node(struct op_call *c);
/* What runs after a node comes after this one: what the node has done, and where it has done nothing, what its inputs and controls have; 0:
 * nothing. by_data: for what takes its value, only what the edge of the value does not say already. */
flow_id frame_token(struct lower *lw, struct frame *fr, uint32_t node, bool by_data);
/* UNIMPLEMENTED where an edge is a feed without a rank for which none is tried yet: lw->found.wants_feed then names it. */
status lower_check_feed(struct lower *lw, const struct frame *fr, struct edge e);
/* lower_alternatives.c: a call of the node's builder, for each of the ranks that its inputs may have. */
status lower_each_alternative(struct op_call *c);
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
/* What is assigned to the variable has this rank. */
void lower_note_rank(struct op_call *c, uint32_t var, int rank);
/* The value of whatever rank: for a fetch. */
status lower_any_rank(struct op_call *c, struct bound b, value_id *out);
/* v without the axes `drop`, and without those of the set `late` whose size the step finds to be 1. */
status lower_squeezed(struct op_call *c, value_id v, uint32_t late, const bool *drop, struct bound *out);
/* lower_loop.c: lowers the needed nodes of a scope with its loops, each as one While. */
status loops_lower_scope(struct lower *lw, struct frame *fr, const uint32_t *order, const bool *needed);

/* lower_await.c: a loop's body that is walked through until enough is known of the lists that it changes, around those walks. */
struct awaiting {
  uint32_t lists; /* so many of the records of objects are of what was made outside of it */
  uint32_t count; /* of elements that this walk has left out */
  bool is_last;   /* no more is left out: what is not known is an error */
  struct awaiting *outer;
};
void lower_await_begin(struct lower *lw, struct awaiting *a);
void lower_await_end(struct lower *lw, const struct awaiting *a);
/* After a walk: whether it left something out of which the next one knows more, or which is to be an error there. */
bool lower_await_again(struct lower *lw, struct awaiting *a);
/* Whether what is dead here may be there in a later walk. */
bool lower_is_awaiting(const struct lower *lw);
/* Stands for such a result of a flow, like that one, or, of a branch (NULL), as what other branches have makes it later. */
value_id lower_await_result(struct flow *flow, const struct flow_value *like);

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
status lower_body(struct op_call *c, const char *function, const struct attr *attrs, uint32_t attr_count, const struct bound *args,
                  uint32_t arg_count, struct bound *rets, uint32_t ret_count);
/* The same of a body whose calls run what they name. */
status lower_body_as_written(struct op_call *c, const struct attr_func *function, const struct bound *args, uint32_t arg_count,
                             struct bound *rets, uint32_t ret_count);
/* Runs `build` in a lowering beside this one: what it finds out is forgotten but for the flow that it gives. */
status lower_aside(struct op_call *c, status (*build)(struct op_call *aside, const void *self, struct flow **out), const void *self,
                   struct flow **out);
/* The body of a function of scalars in a flow of its own, *out, which is none of the entry's: the values of its arguments and results. */
status lower_scalars(struct op_call *c, const struct attr_func *function, const enum dtype *dtypes, uint32_t arg_count, value_id *args,
                     uint32_t ret_count, value_id *rets, struct flow **out);
/* INVALID_ARGUMENT: the placeholder must be fed. */
status lower_refuse_unfed(const struct node *placeholder);
/* The shape that a fed tensor has: dims may be new symbols. */
status lower_feed_shape(struct lower *lw, const struct graph *graph, struct edge feed, int *rank, dim *dims);

#endif
