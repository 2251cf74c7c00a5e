/* lower_state.h: what a lowering has, knows and asks. Only the files of ir/lower see it: builders of ops ask by functions
 * (lower_call.c). */
#ifndef TFC_IR_LOWER_LOWER_STATE_H
#define TFC_IR_LOWER_LOWER_STATE_H

#include "ir/lower/lower_frame.h"

/* Sizes that met in a broadcast, and the size of what came out. */
struct met_dims {
  dim out, a, b;
  bool checked; /* in every step, whatever conds decide */
};

/* What is assigned to a variable that is declared without a rank (lower_variable.c). */
struct assigned_rank {
  uint32_t var;
  rank_set ranks; /* none: not known yet, while what is assigned is looked at: it may read the variable itself */
  struct assigned_rank *next;
};
/* The rank that an assignment of this lowering gave such a variable. */
struct given_rank {
  uint32_t var;
  int rank; /* -1: it cannot be said */
};

/* The value that lists the names of a step's temporary variables, on a task (ops/state/ops_temporary.c). */
struct temporary_list {
  uint32_t task;
  value_id list;
};

/* A value of a flow that was another one first (op_origin). */
struct known_origin {
  struct origin value, of;
};

/* The output whose shape a trial asks for, as it was last lowered: it may lie inside of a loop. */
struct shape_probe {
  const struct graph *graph;
  struct edge edge;
  bool found;
  int rank;
  dim dims[LIMIT_RANK];
};

/* Where the walk is. */
struct lower_walk {
  struct entry *entry;                 /* what is being made ... */
  const struct lower_request *request; /* ... of this */
  struct flow *flow;                   /* where nodes are added now: the entry's, or a region's */
  struct frame *frame;
  struct frame *newest_frame;         /* all frames of this lowering, the last one first */
  struct handed_on *handed_on;        /* what functions that run in the place of others give for their gradients, the last one first */
  uint32_t depth;                     /* of functions */
  struct awaiting *awaiting;          /* the bodies of loops around it, the innermost first */
  uint32_t region_depth;              /* > 0: a failing check is not yet an error of the build */
  uint32_t trial_depth;               /* of lowerings that only ask for a shape: */
  struct shape_probe *probe;          /* NULL: this is none */
  uint32_t alternative_depth;         /* of conditions on which the rank of an input depends */
  bool as_written;                    /* every call runs the function that it names (lower_implementation.c) */
  struct dataset_functions *datasets; /* while those of an iterator are collected (ops/host/ops_dataset.c) */
};

/* What is known of what was lowered so far. */
struct lower_facts {
  VEC(struct object_shapes *) objects; /* per maker */
  VEC(struct known_origin) origins;
  const struct lowered_softmax *softmaxes; /* lower_optimizer.c */
  struct gathered *gathered;               /* a list: what has been gathered (lower_gather.c) */
  VEC(struct temporary_list) temporaries;
  /* of variables */
  VEC(bool) changed;                     /* per variable, where it is as long: an op so far may have changed it */
  struct assigned_rank **assigned_ranks; /* a list, which the lowerings within this one share */
  VEC(struct given_rank) given_ranks;    /* in order */
  /* of sizes */
  VEC(struct met_dims) met;
  VEC(dim) given;          /* late sizes that a shape gives as numbers: in a broadcast nothing is assumed of them */
  uint32_t feed_symbols;   /* symbols below this are sizes of feeds: known when the step starts */
  uint32_t branch_symbols; /* in a branch: symbols below this are known outside of it too */
  uint32_t outer_symbols;  /* in a region: symbols below this were there before the outermost region began */
};

/* What the last builder failed for: it must know more. */
struct lower_wants {
  uint32_t var;   /* it read a variable of several ranks: its number + 1 */
  value_id value; /* it must know the elements of this value; NO_VALUE: none */
  bool axis;      /* which are an axis of so many: */
  int axis_count;
  dim size; /* it must know this size (op_const_size); NO_DIM: none */
};

struct lower {
  struct arena *arena;
  struct dim_table *dims;
  const struct graph *graph; /* the whole graph: function library */
  const struct lower_options *options;
  struct lower_walk walk;
  struct lower_facts facts;
  struct lower_wants wants;
  struct lower_findings found;
  const struct node *not_fed; /* a placeholder that is needed and not fed: what is not known while compiling may be due to it */
};

/* A lowering beside this one, with lists of its own, for what is looked at and thrown away. */
struct lower lower_apart(const struct lower *lw);
/* Frees the lists; all else is in the arena. */
void lower_free(struct lower *lw);

#endif
