/* flow.h: the core ops: what one entry computes, as a data flow of kernels, host calls, variables and regions.
 *
 * Lowering builds a flow from the TensorFlow graph, with dtypes and symbolic shapes already known; placement's tasks are on
 * its nodes; partitioning cuts it into one flow for each task; fusing, scheduling and emitting work on it. Owner: the
 * arena of the compilation. One thread.
 */
#ifndef TFC_IR_FLOW_FLOW_H
#define TFC_IR_FLOW_FLOW_H

#include <stdio.h>

#include "base/panels.h"
#include "ir/size/dim.h"
#include "ir/graph/graph.h"
#include "ir/kernel/kernel.h"

typedef uint32_t value_id; /* index into flow.values; 0 is none */
typedef uint32_t flow_id;  /* index into flow.nodes; 0 is none */
#define NO_VALUE 0u
#define TASK_DRIVER UINT32_MAX     /* the task that runs the entry: feeds come from it, fetches go to it */
#define TASK_SELF (UINT32_MAX - 1) /* with --replicate: the replica's own task; it always drives */

enum flow_op {
  FLOW_NONE,
  FLOW_FEED,     /* outputs: 1; the entry's feed number imm */
  FLOW_FETCH,    /* inputs: 1; the entry's fetch number imm */
  FLOW_CONST,    /* outputs: 1, whose `data` holds the elements */
  FLOW_KERNEL,   /* args bound to the kernel's buffers (below) */
  FLOW_ALIAS,    /* inputs: 1, outputs: 1 of other dims (or dtype of the same size) over the same memory: reshape, bitcast */
  FLOW_READ,     /* the variable var as a value: it aliases the variable's memory until the variable is next updated; imm: enum read_need */
  FLOW_ASSIGN,   /* inputs: 1; the variable var becomes the input (also its shape, where that is not fixed) */
  FLOW_VARIABLE, /* a question about the variable var, answered in output 0: imm = enum variable_question */
  FLOW_HOST,     /* a call into the runtime: host names it (runtime/host/host.def), `attrs` are its words */
  FLOW_BIND,     /* inputs: integer tensors; binds the symbols of `binds` to their elements in order */
  FLOW_IF,       /* inputs: bool scalar or i32 branch index, then captures; regions: one flow for each branch */
  FLOW_WHILE,    /* inputs: loop variables; regions: condition (gives a bool scalar), body */
  FLOW_SEND,     /* inputs: 1; to task `peer` under transfer number imm */
  FLOW_RECV,     /* outputs: 1; from task `peer` under transfer number imm */
  FLOW_NOOP,     /* only there for its control edges */
  FLOW_MERGE,    /* inputs: bool scalar, then the value of the false and of the true side: gives the one that is there */
};
enum variable_question { VARIABLE_IS_INITIALIZED };
enum read_need { READ_NOW, READ_IN_LOOP }; /* IN_LOOP: of a `while`, which misses a variable without a value when it turns */

struct flow_value {
  enum dtype dtype;
  int rank;
  dim dims[LIMIT_RANK];
  flow_id producer;
  uint32_t index;     /* output number of the producer; of a region's parameter: its number */
  const void *data;   /* the elements, when known while compiling (strings: struct string_view) */
  const dim *content; /* the elements as dims, when they are integers known symbolically; else NULL */
  dim length;         /* of a tensor list: how many elements it has; NO_DIM: not known */
  bool any_rank;      /* its rank is that of the value which is there in the step: it is fetched, or given a rank by a merge */
};

/* A variable: one for each (task, container, name) of a build, shared by all entries. */
struct flow_var {
  const char *name, *container;
  enum dtype dtype;
  bool has_shape; /* false: any shape may be assigned (rank unknown or -1 inside) */
  int rank;
  int64_t dims[LIMIT_RANK];
  uint32_t task;
  const char *node;            /* for errors */
  const struct panels *panels; /* pass layout: how it lies, in all entries; NULL: dense. Nodes read and assign it so */
  bool is_resource;            /* made by VarHandleOp: does not exist before its first assignment */
  bool is_sum;                 /* the model says that over several replicas it is the sum of what each has: metrics */
  bool zero_initial;           /* starts initialised, with zeros (has_shape): an op's own, such as a random counter */
};

/* What a buffer of a kernel node is bound to. */
struct flow_arg {
  value_id value;  /* IN: read; OUT: the output made; NO_VALUE when a variable is bound */
  uint32_t var;    /* a variable's number + 1: its memory is read (IN) or updated (INOUT, OUT); 0: none */
  const dim *dims; /* of a variable whose buffer may have other dimensions: its shape, of `rank` dimensions; NULL: the buffer's */
  int rank;
};

struct flow_attr {
  const char *name;
  struct attr_value value;
};

/* A condition under which a node runs: conds of TensorFlow 1. A node whose guards do not all hold is skipped, and what it
 * would have made is not there; only nodes with the same guards and merges may use it. */
struct flow_guard {
  value_id predicate; /* a bool scalar */
  bool expected;
};

/* How a CPU runs a kernel; steps and kernel NULL: as the target does by itself. */
struct scheduled_kernel {
  const char *cpu;       /* as --cpu names it */
  const char *steps;     /* a schedule (ir/schedule/schedule.h) */
  struct kernel *kernel; /* what it makes of the node's */
};

struct flow;
struct flow_node {
  enum flow_op op;
  const char *name; /* the GraphDef node it came from, for errors and traces */
  const char *tf_op;
  uint32_t task; /* index into the cluster's tasks, TASK_DRIVER, TASK_SELF */
  VEC(value_id) inputs;
  VEC(value_id) outputs;
  VEC(flow_id) controls;           /* must have run before */
  const struct flow_guard *guards; /* guard_count of them, the outermost first */
  uint32_t guard_count;
  int64_t imm;
  /* KERNEL */
  struct kernel *kernel;
  struct flow_arg *args;                    /* one for each buffer of the kernel (scratch: both 0) */
  dim *sizes;                               /* kernel->size_count of them */
  const struct scheduled_kernel *scheduled; /* pass schedule: scheduled_count of them, one for each CPU of the build */
  uint32_t scheduled_count;
  /* READ, ASSIGN, VARIABLE: */
  uint32_t var;
  /* HOST */
  const char *host;
  struct flow_attr *attrs;
  uint32_t attr_count;
  bool blocks;       /* may wait for other steps or tasks (queues): the step runs by dependency counts */
  const char *place; /* where in the user's program the TensorFlow node was made: "train.py:12"; NULL: the graph does not say */
  bool stateful;     /* must run exactly once a step and in the given order; never folded or dropped */
  bool is_target;    /* the entry wants it to run, whether or not anybody takes what it gives */
  /* BIND */
  const uint32_t *binds; /* symbols, one for each element of the inputs together */
  uint32_t bind_count;
  /* IF, WHILE */
  struct flow *regions[2];
  struct flow **branches; /* IF: region_count of them; WHILE: regions[0] condition, regions[1] body */
  uint32_t region_count;
  /* WHILE: the last rows_in inputs are arrays whose rows the body takes, one a turn, as its last parameters; the last rows_out
   * results of the body are, turn by turn, the rows of the last outputs. from_last: the first turn has the last row. */
  uint32_t rows_in, rows_out;
  bool from_last;
  /* SEND, RECV */
  uint32_t peer;
};

struct flow_port {
  const char *name;   /* as the entry spells it */
  value_id value;     /* FEED's output; FETCH's input */
  const char *tensor; /* "node:0" */
  bool any_rank;      /* of a feed: its rank is not known; this entry is compiled for one, variants for others */
  bool every_rank;    /* of such a feed: nothing needs it, and any rank will do */
};

struct flow {
  struct arena *arena;
  struct dim_table *dims;
  VEC(struct flow_value) values; /* values.items[0] is none */
  VEC(struct flow_node *) nodes; /* nodes.items[0] is NULL; in an order that respects inputs and controls */
  VEC(value_id) params;          /* of a region */
  VEC(value_id) results;         /* of a region */
  struct flow *parent;           /* of a region: whose values it may not use except through params */
  /* what the passes of these names decide (compiler/pass/NAME.h); NULL before */
  struct layout *layout;
  struct order *order;
  struct lanes *lanes;              /* of what is no region */
  struct plan *plan, *partial_plan; /* partial: of a step that a client feeds bit by bit */
};

/* A size of the feeds that an entry takes to be 1, or not to be: the runtime chooses among variants by it. */
struct size_decision {
  dim size;
  bool is_one;
};

/* One entry after lowering: the whole flow, and after partition one part for each task it touches. */
struct entry_part {
  uint32_t task;
  struct flow *flow;
};
struct entry {
  const char *name;
  VEC(struct flow_port) feeds, fetches;
  VEC(const char *) targets;
  struct flow *flow;
  VEC(struct entry_part) parts;
  bool replicated; /* TASK_SELF occurs */
  bool is_variant; /* the same entry as the one before it, for other ranks or sizes of its feeds */
  VEC(struct size_decision) decisions;
  status failed; /* feeds of these ranks are wrong: what TensorFlow would report when the step runs */
  const char *failed_text;
};

struct flow *flow_create(struct arena *arena, struct dim_table *dims);
struct flow_value *flow_value_get(const struct flow *f, value_id v);
value_id flow_add_value(struct flow *f, enum dtype dtype, int rank, const dim *dims);
struct flow_node *flow_add_node(struct flow *f, enum flow_op op, const char *name, const char *tf_op, uint32_t task, flow_id *out);
/* The value whose memory it is: itself, or what it is an alias of. */
value_id flow_root(const struct flow *f, value_id v);
/* An alias that comes after nothing but the value that it shows. */
bool flow_is_view(const struct flow_node *node);
/* Whether a node has a control edge from that one. */
bool node_follows(const struct flow_node *node, flow_id before);
/* The kernel's buffer that is bound to a value, which is one of its arguments: the first. */
uint32_t flow_buffer_of(const struct flow_node *node, value_id v);
/* The variable in the place of a value that will be its contents: it has the value's shape, whatever the kernel's buffer has. */
struct flow_arg flow_arg_of_variable(const struct flow *f, uint32_t var, value_id v);
/* Whether argument i of a kernel is an output that the node makes: not a variable. */
bool flow_arg_is_output(const struct flow_node *node, uint32_t i);
/* What a node reads: its inputs (a kernel: its arguments), then the predicates of its guards. */
uint32_t flow_input_count(const struct flow_node *node);
/* The value that input i reads; NO_VALUE where a kernel's argument is an output or a variable. */
value_id flow_input(const struct flow_node *node, uint32_t i);
/* Bytes of a value, up to 2^50; sizes that are not known while compiling count as 1 and set *open. */
int64_t flow_value_bytes(const struct flow *f, value_id v, bool *open);
/* "f32[n0,784]" in the arena */
const char *flow_value_text(const struct flow *f, value_id v);
/* Whether dimension d of two values is known to be the same size. */
bool flow_is_same_dim(const struct flow *f, value_id a, value_id b, int d);
/* The text form for --emit ir and --dump-phases. */
char *flow_print(const struct flow *f, struct arena *arena);
/* Of one node "#5 kernel add(in %1, in %2, out %3)". */
void flow_print_node(FILE *out, const struct flow *f, flow_id id);

#endif
