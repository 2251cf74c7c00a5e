/* lower.h: from TensorFlow nodes to core ops.
 *
 * Lowering walks the nodes that an entry needs in topological order. Each op is a row (ops.def) whose builder is called with
 * what the inputs became and says what the outputs become: mostly kernels, built with the kb_ functions below. Because
 * dtypes, symbolic shapes and known contents travel with the values, one walk infers types and shapes, folds constants and
 * shape arithmetic (kb_finish evaluates a kernel whose inputs are known), and checks what the graph already determines.
 *
 * A builder's errors get the node's name and op in front. One thread.
 */
#ifndef TFC_IR_LOWER_LOWER_H
#define TFC_IR_LOWER_LOWER_H

#include <string.h>

#include "ir/flow/flow.h"
#include "ir/kernel/formula.h"
#include "ir/graph/registry.h"

/* What an output of a TensorFlow node became. */
struct bound {
  value_id value;  /* a value; NO_VALUE when it is only a variable */
  uint32_t var;    /* a reference to (or handle of) a variable: its number + 1; 0: none */
  flow_id after;   /* reading or updating the variable through this edge comes after that node */
  uint32_t shares; /* the value is what the variable with this number - 1 held when a reference to it was read: in TensorFlow the two
                     * share memory, so whoever uses the value after an update sees the new one (op_input); 0: none */
  bool rereads;    /* it comes from outside of a loop that changes the variable: whoever uses it reads what is there in its turn */
  const struct node *maker;                /* of a resource that is no variable: the node that made the handle */
  const struct guards *guards;             /* when it is there; NULL: always */
  bool dead;                               /* known while compiling never to be there */
  const struct alternatives *alternatives; /* two values of different ranks, of which the step has one: then `value` is none; or NULL */
  /* TensorFlow's value lacks some of the dimensions that are 1 here: only what ignores them may use it; the size that says how many */
  dim rank_open;
};
/* The values of both sides of a condition, each under it. */
struct alternatives {
  value_id predicate;   /* bool */
  struct bound side[2]; /* when it is false, when it is true */
};
/* A list of conditions, the outermost first; immutable. */
struct guards {
  uint32_t count;
  struct flow_guard list[];
};

/* A value of a flow. */
struct origin {
  const struct flow *flow;
  value_id value;
};
static inline bool origin_equal(struct origin a, struct origin b) { return a.flow == b.flow && a.value == b.value && a.value; }
/* What a branch hands out. */
struct branch_own {
  const struct node *maker;
  struct origin value;
};
/* What is known while compiling of what a resource holds: the shapes of a queue's components, of a tensor array's elements. */
#define OBJECT_KEYED_MAX 64 /* elements of a list that are remembered one by one: what is written out in a graph */
struct object_shapes {
  const struct node *maker;
  uint32_t count;
  struct flow_value *values;
  const struct node **makers; /* of each that is an object itself (a list of lists), or NULL */
  bool awaited;               /* of a list: an element was taken out before any was put in (lower_await.c) */
  bool said;                  /* what `values` has is what the maker says; no element has come yet */
  bool varies;                /* of a stack: what is pushed is not always the same */
  const dim *declared;        /* of a tensor list: the sizes that it was made with (-1: open), where they are known while compiling */
  int declared_rank;
  bool undeclared;             /* it was made without any */
  struct object_shapes *other; /* of what branches hand out: another thing that it may be; NULL: there is none */
  const int64_t *keys;         /* of a list, from the second value on: the element it belongs to; the first is any element's */
  rank_set ranks;              /* of a list: of what was put in */
  struct origin pushed;        /* of a list that was empty: what is put at its end; of an optional: what it holds; no flow: not known */
  const char *pushed_by;       /* the node that does; "": several do, or elements come otherwise */
  struct origin made;          /* the optional that holds that */
  struct origin choice;        /* what decided which branch's own it is, */
  struct branch_own *branches; /* and those; NULL: no branches did */
};

/* A value that is to be that of all workers behind each other, for some of those that take it (lower_gather.c): rows of a
 * gradient, or where they are. What it is known by are names of nodes, as it is asked for after a first lowering. */
struct lower_gather {
  const char *value;   /* the node that makes it */
  const char **users;  /* nodes: user_count of them */
  const char **makers; /* nodes that make gradients of it, each worker of its own: maker_count of them */
  uint32_t user_count, maker_count;
  uint32_t pair;        /* rows and their indices have one number in an entry, and one size */
  bool is_mean;         /* divided by the number of workers */
  const char *indices;  /* the node that makes those, where all workers' are to be there once, with one row each; else NULL */
  int64_t workers, key; /* of the group that meets */
};
struct frame;
struct lower; /* what a lowering has and knows: lower_state.h, which its own files alone see */
struct dataset_functions;

/* One call of a builder. */
struct op_call {
  struct lower *lw;
  const struct node *node;
  const struct op_row *row;
  struct bound *in;
  uint32_t in_count;
  struct bound *out;
  uint32_t out_count;
  VEC(flow_id) controls;       /* what must have run before effects of this node */
  flow_id effect;              /* the last effect emitted by this call, 0: none */
  flow_id guard;               /* the last check of sizes by this call, 0: none: its kernels run behind it */
  VEC(flow_id) body;           /* effects of a function body lowered for this call */
  bool keeps_guards;           /* the builder has set the outputs' guards itself */
  bool too_many;               /* the builder has set an output that the node has not: its attributes say different numbers */
  const struct guards *guards; /* conditions of this node: of all its inputs and control inputs together */
};

/* After a copy of the call has been lowered: the call goes on behind its effects. Its list of controls may have grown, and moved. */
static inline void op_go_on(struct op_call *c, const struct op_call *copy) {
  c->effect = copy->effect;
  memcpy(&c->controls, &copy->controls, sizeof c->controls);
}

typedef status (*op_builder)(struct op_call *c);

struct op_row {
  const char *name;
  op_builder build;
  const char *type; /* of `data`, where it says what tells apart the ops of one builder: a struct of ops/op_rows.h; else NULL */
  const void *data; /* for builders shared by several rows */
};
/* NULL when tfc has no row for it. */
const struct op_row *op_row_find(const char *op);
const struct op_row *op_rows(uint32_t *count);

/* ---- the walk (lower.c) ---- */

struct feed_size {
  uint32_t feed;
  int axis;
  int64_t size;
};
struct lower_request {
  const struct graph *graph;
  struct edge *feeds, *fetches;
  const char **feed_names, **fetch_names; /* as users spell them */
  uint32_t *targets;                      /* nodes */
  uint32_t feed_count, fetch_count, target_count;
  /* for feeds whose rank the graph does not say (lower_feed_has_rank); -1: not said either; or NULL */
  const int *feed_ranks;
  const struct feed_size *feed_sizes; /* sizes that the graph leaves open and this lowering does not */
  uint32_t feed_size_count;
};
/* Whether the graph says the rank of a fed tensor: its own or, of what a node computes, those of all placeholders before it. */
bool lower_feed_has_rank(const struct graph *graph, struct edge feed);
/* What a lowering works with, and what is assumed in it. */
struct lower_options {
  struct arena *arena;
  struct dim_table *dims;
  /* Finds or makes the variable (task, container, name) and returns its number. */
  uint32_t (*find_var)(void *self, const struct flow_var *wanted);
  const struct flow_var *(*get_var)(void *self, uint32_t var);
  /* Values of other shapes than it is declared with are assigned to a variable: it has this rank (-1: any), and the sizes `dims`
   * (-1: open). Every entry is lowered again. */
  void (*open_var)(void *self, uint32_t var, int rank, const int64_t *dims);
  void *self;
  /* Comparisons without shape errors, of sizes that are not known: they are compiled once for sizes that fit, and, where there were any,
   * once more for sizes that do not: a variant of the entry. */
  bool misfits;
  bool broadcasts; /* nothing is assumed of sizes that meet in a broadcast, or that are equal as a rule: a variant */
  /* Sizes of feeds that decide a rank by being 1 (op_decide_one): what was asked so far is entry->decisions, and the first
   * `one_count` answers are given; those after them are no. */
  const bool *ones;
  uint32_t one_count;
  const struct lower_gather *gathers;
  uint32_t gather_count;
};
/* What it found out, also where it failed: why the entry needs variants. */
struct lower_findings {
  bool undecided;        /* comparisons may misfit */
  bool assumed;          /* sizes that meet in a broadcast, or are equal as a rule, were taken for equal (lower_broadcast.c) */
  uint32_t wants_feed;   /* it failed because it needs this feed, whose rank is not said: its number + 1 */
  uint32_t wants_symbol; /* it failed because it must know this size of a feed: its symbol + 1 */
};
/* Lowers one entry into out->flow (with feeds and fetches filled). Errors name the node and the op; UNIMPLEMENTED names
 * all ops of the entry that have no row. */
status lower_entry(const struct lower_options *options, const struct lower_request *request, struct lower_findings *found,
                   struct entry *out);
/* Lowers a list of ops that are not supported: for tfc check. */
status lower_check_rows(const struct graph *graph, const bool *needed);
/* The nodes that the request needs: needed[nodes.count]. */
status lower_mark_needed(const struct lower_request *request, bool *needed);

/* The shape of an edge of the top graph that another entry may compute: what a resource without a handle, or without shapes,
 * is given elsewhere. sizes: -1 where one is open. Placeholders without a rank are taken for scalars: the step checks what
 * comes. False when it cannot be said. */
bool lower_static_shape(const struct lower *lw, struct edge edge, int *rank, int64_t *sizes);
/* The same, but false where it depends on a placeholder without a rank. */
bool lower_said_shape(const struct lower *lw, struct edge edge, int *rank, int64_t *sizes);

/* Notes that the op which is being lowered may change the variable. */
void lower_note_change(struct lower *lw, uint32_t var);

/* The record of a maker's resource, empty at first; NULL: there is no maker. */
struct object_shapes *lower_object(struct lower *lw, const struct node *maker);
/* How many records there were before it; as many as there are: it has none yet. */
uint32_t lower_object_number(const struct lower *lw, const struct node *maker);
/* Elements of another size than those before: that size is none of the list's. True when it was. */
bool lower_join_element(struct op_call *c, struct flow_value *known, const struct flow_value *x);
/* Remembers the lasting shape of an element of a list. */
void lower_note_element(struct op_call *c, struct object_shapes *list, struct flow_value element);
/* A loop hands on the list that `other` made in the place of the one that `list` made: this may be either from then on. True when more is
 * known of it now, or less. */
bool lower_join_list(struct op_call *c, const struct node *list, const struct node *other);
/* The maker of what is one or the other: of two lists the one that was made first, of which that is known from then on; else `a`. */
const struct node *lower_either_list(struct op_call *c, const struct node *a, const struct node *b);
/* Whether what is put into the list, of which no element is known yet, may still be seen: the element that is asked for then is dead in
 * this walk over a loop's body. */
bool lower_await_element(struct lower *lw, const struct node *list);
/* What a value here was first: what came out of a list is what the same turn of the loop in front put in, what came out of an optional
 * what was put in; what a branch is given, what a loop hands through is what it was outside. Others, and all but
 * scalars that can decide or be optionals: themselves. */
struct origin op_origin(const struct op_call *c, value_id v);
void lower_note_origin(struct lower *lw, const struct flow *flow, value_id v, struct origin of);
/* What may be remembered of a value there: its dtype, rank and dims, NO_DIM for those that change from turn to turn of a loop. `row`:
 * of one row of it. */
struct flow_value op_lasting_shape(struct op_call *c, const struct flow_value *x, bool row);

/* ---- the lowering that calls a builder (lower_call.c) ---- */

struct arena *op_arena(const struct op_call *c);
struct dim_table *op_dims(const struct op_call *c);
/* Where nodes are added now: the entry's flow, or a region's. */
struct flow *op_flow(const struct op_call *c);
/* The whole graph: the function library. */
const struct graph *op_graph(const struct op_call *c);
/* The graph that is being lowered, the whole one or a function's body; and the last one made, behind which all others are
 * (lower_frame.h). */
struct frame *op_frame(const struct op_call *c);
struct frame *op_newest_frame(const struct op_call *c);
/* In a region a failing check is not yet an error of the build. */
bool op_in_region(const struct op_call *c);
/* Only a shape is asked for: the flow is thrown away. */
bool op_in_trial(const struct op_call *c);
/* Finds or makes the variable (task, container, name) and returns its number. */
uint32_t op_find_var(struct op_call *c, const struct flow_var *wanted);
/* Values of other shapes than it is declared with are assigned to a variable: struct lower_options. */
void op_open_var(struct op_call *c, uint32_t var, int rank, const int64_t *dims);
/* For comparisons without shape errors, of sizes that are not known: whether they are taken not to fit. The entry has a variant for the
 * other answer. */
bool op_takes_misfits(struct op_call *c);
/* Sizes that meet in a broadcast were taken for equal: the entry has a variant that assumes nothing. */
void op_note_assumed(struct op_call *c);
/* The node is a placeholder that is needed and not fed: what is not known while compiling may be due to it. */
void op_note_unfed(struct op_call *c);
/* The value that lists the names of a step's temporary variables, on the node's task; NO_VALUE at first. */
value_id *op_temporaries(struct op_call *c);
/* Where the functions of an iterator's datasets are collected (ops/host/ops_dataset.c); NULL: they are not. Returns the place before. */
struct dataset_functions *op_datasets(const struct op_call *c);
struct dataset_functions *op_collect_datasets(struct op_call *c, struct dataset_functions *all);

/* ---- values ---- */

struct flow_value *op_value(const struct op_call *c, value_id v);
/* Input i as a value: a variable is read here. */
status op_input(struct op_call *c, uint32_t i, value_id *out);
void op_add_control(struct op_call *c, flow_id id);
/* The effects of the call come after all that its inputs are computed from: where it looks at a variable before it uses them. */
void op_after_inputs(struct op_call *c);
/* The same for what is no input of the call, under its own guards. */
status op_read(const struct op_call *c, struct bound b, value_id *out);
/* The inputs by the registry's argument name: the first input number of it. UINT32_MAX when the op has no such argument. */
uint32_t op_arg_index(const struct op_call *c, const char *name);
bool op_takes(const struct op_call *c, const char *name); /* whether it has an argument of that name: ops of one builder may differ in it */
/* The variable behind input i (its number); INVALID_ARGUMENT when it is none. */
status op_input_var(struct op_call *c, uint32_t i, uint32_t *out);
/* The name under which the node keeps what it knows from step to step: its own; in a function the body's name for it, behind what the
 * body's state is named after (struct frame). */
const char *op_state_name(const struct op_call *c);
const struct flow_var *op_var(const struct op_call *c, uint32_t var);
void op_set_output(struct op_call *c, uint32_t i, value_id v);
enum dtype op_output_dtype(const struct op_call *c, uint32_t i);

/* Adds a flow node for this call. Effects (updates, stateful host calls, reads) are ordered after the call's controls and
 * its earlier effects. */
struct flow_node *op_emit(struct op_call *c, enum flow_op op, bool effect);
value_id op_add_output(struct op_call *c, struct flow_node *n, enum dtype dtype, int rank, const dim *dims);
/* The elements at `data` (kept by reference) as a constant value. */
value_id op_constant(struct op_call *c, enum dtype dtype, int rank, const dim *dims, const void *data);
value_id op_constant_i64s(struct op_call *c, enum dtype dtype, int rank, const int64_t *dims, const int64_t *values, uint32_t count);
/* An integer value whose elements are these dims (1-d of `count`, or a scalar when rank is 0). */
value_id op_dims_value(struct op_call *c, enum dtype dtype, int rank, const dim *dims, int count);
/* The same memory under other dims. */
value_id op_alias(struct op_call *c, value_id v, enum dtype dtype, int rank, const dim *dims);

/* The elements of an integer value as dims: known ones from its content, others as new symbols that are bound when the
 * value is there. UNIMPLEMENTED when their number is not known or above LIMIT_CONTENT. `out` in the arena. */
status op_elements(struct op_call *c, value_id v, dim **out, int *count);
/* The same for a vector that is the shape of a result: nothing is assumed of its sizes (op_note_given). */
status op_given_shape(struct op_call *c, value_id v, const char *what, dim **out, int *rank);
/* Like op_elements, but leaves NO_DIM where an element is not known while compiling. */
status op_known_elements(struct op_call *c, value_id v, dim **out, int *count);
/* The same, for a builder that can do without: nobody is asked for what is not known. */
bool op_has_known_elements(struct op_call *c, value_id v, dim **out, int *count);
/* All elements as numbers; UNIMPLEMENTED naming the argument when they are not known while compiling. */
status op_const_ints(struct op_call *c, value_id v, const char *what, int64_t **out, int *count);
/* One integer that must be known while compiling. */
status op_const_int(struct op_call *c, value_id v, const char *what, int64_t *out);
/* The same for an axis, in -count .. count-1: where only the step knows it, the builder is called again for each (lower_choice.c).
 * Whether it is in that range is for the caller to see. */
status op_const_axis(struct op_call *c, value_id v, const char *what, int count, int64_t *out);
/* A size that must be known, as it decides a rank. Where it is a feed's, the entry has a variant for each value; where only the step knows
 * it, the builder is called again for each (lower_alternatives.c). */
status op_const_size(struct op_call *c, dim d, const char *what, int64_t *out);

/* ---- dims ---- */

dim op_dim(struct op_call *c, int64_t value);
dim op_count(struct op_call *c, int rank, const dim *dims);
int64_t op_dim_value(struct op_call *c, dim d); /* -1 when not constant */
/* From now on a and b are equal (checked at run time); INVALID_ARGUMENT with `what` when they are known to differ. */
status op_equal_dims(struct op_call *c, dim a, dim b, const char *what);
status op_same_shape(struct op_call *c, value_id a, value_id b, const char *what); /* the ranks are known to be equal, too */
/* Whether a size depends on what is computed in the step, and not on the feeds' shapes alone. */
bool op_dim_is_late(struct op_call *c, dim d);
/* Whether all of the entry may take two sizes for equal, one of them a symbol: not where only one side of a cond needs it, for
 * sizes that the other side knows too. */
bool op_may_unify(struct op_call *c, dim a, dim b);
/* The shape that inputs broadcast to; INVALID_ARGUMENT `Incompatible shapes: [2,3] vs. [4]`. Sizes that are not known may be 1 at
 * run time (lower_broadcast.c): loads must go through kb_load_broadcast, in loops opened by kb_loops over these dims. */
status op_broadcast(struct op_call *c, value_id a, value_id b, int *rank, dim *dims);
/* The same for one size: loads where it is not the result's must be clamped to the last element. */
status op_broadcast_dim(struct op_call *c, dim a, dim b, dim *out);
/* A size that is given as a number, which may well be 1: it is taken for no other's. */
void op_note_given(struct op_call *c, dim d);
/* The same for builders whose loads do not: sizes that are not known must be equal. */
status op_broadcast_equal(struct op_call *c, value_id a, value_id b, int *rank, dim *dims);
/* Whether sizes that are not known to be equal may be taken for it: whoever takes them so says that it is assumed. */
bool op_may_assume_equal(struct op_call *c, dim a, dim b);
/* Whether sizes that are equal as a rule are taken for it: those of feeds are not in the variant of the entry that assumes nothing. */
bool op_assume_equal(struct op_call *c, dim a, dim b);
/* Size a is repeated to the size `target`: it must be that or 1. */
status op_broadcast_into(struct op_call *c, dim a, dim target);
/* Whether a size is 1, where a rank depends on it. Of a size of feeds it is decided, and the entry has a variant for the other
 * answer: 1 or 0. Of one that the step computes nobody can say: -1. */
int op_decide_one(struct op_call *c, dim d);
/* Whether a size means the same everywhere in the entry: none of its symbols is bound inside of a region. */
bool op_dim_is_outer(struct op_call *c, dim d);
/* "[n0,784]" */
const char *op_shape_text(struct op_call *c, int rank, const dim *dims);
/* An axis in [-rank, rank) made non-negative; INVALID_ARGUMENT otherwise. */
status op_axis(struct op_call *c, int64_t axis, int rank, int *out);
dim op_new_symbol(struct op_call *c);

/* ---- kernels (lower_kernel.c) ---- */

/* Kernels know nothing of variants: for one that puts elements of variants elsewhere they are numbers, those of its first variant input
 * from 0 on, of the next behind them; none is -1. The runtime then takes the elements that an output names. */
struct kb_places {
  uint32_t buffer; /* of numbers */
  value_id value;  /* of variants */
};

#define KB_DEPTH (LIMIT_RANK + 8) /* loops over all axes, and what builders put around and into them */
struct kb {
  struct op_call *c;
  struct kernel *k;
  struct formula f;
  VEC(struct flow_arg) args;
  VEC(dim) sizes;
  struct stmt **tail[KB_DEPTH]; /* where the next statement goes, per open block */
  struct stmt *open[KB_DEPTH];
  int depth;
  bool effect;
  int loop_rank; /* of the last kb_loops: for kb_load_broadcast */
  dim loop_dims[LIMIT_RANK];
  VEC(struct kb_places) places; /* the outputs that are variants */
  uint32_t misshapen;           /* a buffer that was read as a scalar and is none: its number + 1; kb_finish refuses it */
};

/* Starts a kernel; constants of its formulas have `dtype`. */
void kb_begin(struct kb *kb, struct op_call *c, enum dtype dtype);
/* Adds the node; kernels whose inputs are all known are evaluated instead and their outputs become constants. */
status kb_finish(struct kb *kb);
uint32_t kb_in(struct kb *kb, value_id v);
uint32_t kb_out(struct kb *kb, enum dtype dtype, int rank, const dim *dims); /* a new value: kb_value(kb, buffer) */
value_id kb_value(const struct kb *kb, uint32_t buffer);
/* A variable's memory, in place (INOUT) or read; the kernel is then an effect. `dims`: its shape. */
uint32_t kb_var(struct kb *kb, uint32_t var, enum buffer_mode mode, int rank, const dim *dims);
uint32_t kb_scratch(struct kb *kb, enum dtype dtype, int rank, const dim *dims);
expr_id kb_dim(struct kb *kb, dim d);         /* as an i64 expression */
expr_id kb_int(struct kb *kb, int64_t value); /* i64 */

/* Blocks: each open one must be closed. */
expr_id kb_for(struct kb *kb, enum loop_kind loop, expr_id extent); /* the loop variable */
expr_id kb_for_dim(struct kb *kb, enum loop_kind loop, dim extent);
void kb_loops_over(struct kb *kb, int rank, const dim *dims); /* what kb_load_broadcast is to know of loops that are opened one by one */
void kb_loops(struct kb *kb, enum loop_kind loop, int rank, const dim *dims, expr_id *index);
void kb_if(struct kb *kb, expr_id condition);
void kb_else(struct kb *kb); /* turns the open `if` to its other branch */
void kb_while(struct kb *kb, expr_id condition);
void kb_close(struct kb *kb, int count);
uint32_t kb_local(struct kb *kb, expr_id initial); /* var; its number */
expr_id kb_get(struct kb *kb, uint32_t local);
void kb_set(struct kb *kb, uint32_t local, expr_id value);
/* `text` has a "%d" for each of the values shown (NO_EXPR: none). */
void kb_check(struct kb *kb, expr_id holds, status code, const char *text, expr_id shown0, expr_id shown1);
/* INVALID_ARGUMENT; the text shows three: where the index stands, the index, and the size that it is not in. */
void kb_check_index(struct kb *kb, expr_id holds, const char *text, expr_id place, expr_id index, expr_id size);

struct element kb_load(struct kb *kb, uint32_t buffer, const expr_id *index);
void kb_store(struct kb *kb, uint32_t buffer, const expr_id *index, struct element value);
/* Loads with broadcasting: index has out_rank places, the buffer's rank is at most that. */
struct element kb_load_broadcast(struct kb *kb, uint32_t buffer, int out_rank, const expr_id *index);
/* The index of one of its axes. */
expr_id kb_broadcast_index(struct kb *kb, uint32_t buffer, int axis, int out_rank, const expr_id *index);
/* i64 arithmetic on expressions */
expr_id kb_add(struct kb *kb, expr_id a, expr_id b);
expr_id kb_sub(struct kb *kb, expr_id a, expr_id b);
expr_id kb_mul(struct kb *kb, expr_id a, expr_id b);
expr_id kb_div(struct kb *kb, expr_id a, expr_id b); /* floored */
expr_id kb_mod(struct kb *kb, expr_id a, expr_id b);
expr_id kb_lt(struct kb *kb, expr_id a, expr_id b);
expr_id kb_and(struct kb *kb, expr_id a, expr_id b);
expr_id kb_clamp(struct kb *kb, expr_id a, expr_id count); /* to [0, count) */
/* an integer element of any dtype as i64 */
expr_id kb_index(struct kb *kb, struct element e);

/* lower_map.c: out[i...] = formula(inputs[i...] broadcast), the commonest kernel. */
typedef struct element (*map_formula)(struct formula *f, struct element a, struct element b, struct element c);
status op_map(struct op_call *c, const value_id *inputs, int count, enum dtype out, map_formula formula, value_id *result);
/* A plain copy with another order of reading: out dims, and the index into the input for an output index. */
status op_copy(struct op_call *c, value_id v, value_id *out);
status op_cast(struct op_call *c, value_id v, enum dtype dtype, value_id *out);

#endif
