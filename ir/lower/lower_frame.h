/* lower_frame.h: one graph being lowered: the top level, or the body of a function; regions, and conditions of nodes. Private to
 * lowering. */
#ifndef TFC_IR_LOWER_LOWER_FRAME_H
#define TFC_IR_LOWER_LOWER_FRAME_H

#include "ir/lower/lower.h"

struct instance;

struct frame {
  const struct graph *graph;
  const struct flow *flow; /* that its nodes are added to, and their values are of */
  struct bound **bound;    /* per node: what its outputs became; NULL until lowered or fed */
  bool *lowered;
  flow_id *token;
  bool *token_known;
  flow_id *data_token; /* what a data edge from the node does not order by itself */
  bool *data_token_known, *has_effect;
  bool *is_aside;            /* what the node does takes not all of its inputs: its token is not theirs, too, yet */
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
/* lower_guard.c: the conditions of a node whose inputs have these; both may be NULL. */
const struct guards *guards_join(struct lower *lw, const struct guards *a, const struct guards *b);
bool guards_have(const struct guards *g, struct flow_guard wanted);
const struct guards *guards_add(struct lower *lw, const struct guards *g, struct flow_guard one);
/* The one of two values that is there, as `dims`; bool constants. */
value_id op_merge(struct op_call *c, value_id predicate, value_id when_false, value_id when_true, int rank, const dim *dims);
value_id op_bool(struct op_call *c, bool value);
/* lower_call.c: whether an op so far may have changed the variable. */
bool lower_may_have_changed(const struct lower *lw, uint32_t var);
/* lower_gather.c: inputs of the call that lower_options.gathers asks for. */
status lower_gather_inputs(struct op_call *c);
/* loop_frames.c: the loops of a graph (frames of Enter and Exit); NULL when it has none. Errors name the node. */
status loops_find(struct lower *lw, const struct graph *graph, const uint32_t *order, struct loops **out);

#endif
