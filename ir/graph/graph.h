/* graph.h: a TensorFlow graph as it was read: nodes with ops, attributes, data and control edges, and a function library.
 *
 * Readers (compiler/read) fill it; the passes up to placement work on it; lowering (ir/lower/lower.c) turns what an entry needs
 * into core ops (ir/flow/flow.h). Every node keeps its GraphDef name. Owner: the arena of the compilation. One thread.
 */
#ifndef TFC_IR_GRAPH_GRAPH_H
#define TFC_IR_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

#define NO_NODE UINT32_MAX

enum attr_kind {
  ATTR_NONE,
  ATTR_STRING,
  ATTR_INT,
  ATTR_FLOAT,
  ATTR_BOOL,
  ATTR_TYPE,
  ATTR_SHAPE,
  ATTR_TENSOR,
  ATTR_FUNC,
  ATTR_LIST,        /* items of one of the kinds above */
  ATTR_PLACEHOLDER, /* in function bodies: the name of an attribute of the caller (in s) */
};

struct attr_shape {
  bool unknown_rank;
  int rank;            /* may be above LIMIT_RANK: whoever uses it checks */
  const int64_t *dims; /* -1: unknown */
};

/* A constant: all elements expanded, row-major. Strings: struct string_view elements. count fits the shape's product. */
struct constant {
  enum dtype dtype;
  int rank;
  int64_t dims[LIMIT_RANK];
  int64_t count;
  const void *data;
};

struct attr_func;
struct attr_value {
  enum attr_kind kind;
  struct {
    const char *data; /* NUL-terminated copy as well, but may hold NULs */
    uint64_t size;
  } s;
  int64_t i; /* INT, BOOL, TYPE */
  double f;
  struct attr_shape shape;
  const struct constant *tensor;
  const struct attr_func *func;
  struct {
    const struct attr_value *items;
    uint32_t count;
  } list;
};
struct attr {
  const char *name;
  struct attr_value value;
};
struct attr_func {
  const char *name;
  const struct attr *attrs;
  uint32_t attr_count;
};

struct edge {
  uint32_t node;
  uint32_t port;
};

struct op_def; /* ir/graph/registry.h: the op's signature in TensorFlow's registry */

struct node {
  const char *name;
  const char *op;
  const char *device;       /* as in the NodeDef; "" when none */
  const struct attr *attrs; /* as in the NodeDef, sorted by name; defaults are found by node_attr (registry.h) */
  uint32_t attr_count;
  const struct edge *inputs;
  uint32_t input_count;
  const uint32_t *controls; /* nodes that must have run before */
  uint32_t control_count;
  const struct op_def *def;     /* NULL until registry_check; a node whose op is a function of the library has none */
  const uint8_t *output_dtypes; /* after registry_check; may be above DTYPE_REF */
  const uint8_t *input_dtypes;
  uint32_t output_count;
  uint32_t task;        /* after placement: index into the cluster's tasks */
  const char *assigned; /* after placement: the full device name */
};

struct function_body; /* ir/graph/function.h */
struct op_arg;        /* ir/graph/registry.h: an argument, or a list of arguments, of a signature */
/* What a function is in a pair made for gradients: a call alone, one that hands on what the gradient needs, or the gradient. */
enum function_role { FUNCTION_INFERENCE, FUNCTION_FORWARD, FUNCTION_BACKWARD };
/* A function of the library. Its body is a graph of its own, whose first nodes are the arguments (op "_Arg", attr T). */
struct function {
  const char *name;
  const struct op_arg *args, *rets; /* of the signature: a list counts once; what it holds, the caller's attributes decide */
  uint32_t arg_count, ret_count;
  bool is_shared;               /* `_noinline`: all calls run one body, whose nodes keep one state */
  bool is_stateful;             /* the signature says it: a call runs though nobody uses its results */
  const char *interface;        /* what it implements (ir/graph/implementation.h); NULL: nothing */
  const char *preferred_device; /* the kind of device that it is made for: "CPU"; NULL: any */
  enum function_role role;
  /* the body as it came: resolved for given attributes by the inlining code (ir/graph/function.h) */
  const struct function_body *body;
};

struct graph {
  struct arena *arena;
  VEC(struct node) nodes;
  struct map names; /* node name -> index */
  VEC(struct function) functions;
  struct map function_names;
  struct map gradients;             /* name of a function -> index into gradient_names */
  VEC(const char *) gradient_names; /* of the functions that are a function's gradient (GradientDef) */
  int producer;                     /* versions.producer */
  struct map place_names;           /* "node@function" ("node@" outside of functions) -> index into places */
  VEC(const char *) places;         /* where in the user's program: "train.py:12" */
};

/* What a MetaGraphDef or SavedModel says beside the graph. */
struct signature_tensor {
  const char *key, *tensor; /* "x", "x:0" */
};
struct signature {
  const char *name;
  VEC(struct signature_tensor) inputs, outputs;
};
/* TensorFlow 2's objects (modules, layers, variables) by number, 0 the root: what each calls its parts. */
struct object_child {
  const char *name;
  uint32_t object;
};
struct object {
  const struct object_child *children;
  uint32_t child_count;
  const char *constant; /* the operation that makes it, or NULL */
  bool is_sum;          /* a variable whose value over several replicas is the sum of theirs, as metrics are */
  uint32_t asset;       /* its number among model.assets + 1; 0: it is none */
};
/* A tensor that a function takes or gives, as its Python signature calls it. */
struct structured_port {
  const char *key;
  struct attr_shape shape;
};
/* The objects that a function has captured: its last arguments, in order. */
struct captures {
  const char *function;
  const uint32_t *objects;
  uint32_t count;
  const struct structured_port *inputs, *outputs; /* of the Python function, in the order of arguments and results */
  uint32_t input_count, output_count;
  bool is_opaque;  /* takes or gives what is no tensor: ragged or sparse ones */
  bool is_flagged; /* traced with an argument True, such as `training` */
};
/* A function of the root object that anybody may call: `train_step`, `call`. */
struct method {
  const char *name;      /* in Python */
  uint32_t function;     /* index into model.captures */
  const char *node;      /* the call in the graph; NULL: it has none (compiler/pass/methods.c) */
  const char *signature; /* the first that runs it; NULL: none */
};
/* What threads of a TensorFlow session run, each again and again: a QueueRunner. */
struct queue_runner {
  const char *queue;             /* its node */
  VEC(const char *) enqueue_ops; /* one for each thread */
  const char *close_op;          /* runs when the last of them has come to the end; "": none */
  const char *cancel_op;         /* a client runs it when it gives up; "": none */
  uint64_t end_codes;            /* bits of the statuses that are the end, no error */
};
/* How a client saves and restores by running the graph: SaverDef. */
struct saver_names {
  const char *filename, *save, *restore; /* a placeholder's tensor, the tensor to be fetched, the operation to be run */
};
struct asset {
  const char *tensor, *file; /* "vocabulary:0" holds the path of the file in the SavedModel's folder `assets` */
};
struct model {
  struct graph *graph;
  VEC(struct signature) signatures;
  VEC(struct attr) collections;          /* name -> ATTR_LIST of ATTR_STRING: node_list and bytes_list collections */
  const char *variables_prefix;          /* a SavedModel's "DIR/variables/variables", or NULL */
  const char *restore_op, *restore_feed; /* saver_def: names, or NULL */
  const char *main_op;                   /* what a loader of the SavedModel runs after restoring (tables), or NULL */
  VEC(struct queue_runner) queue_runners;
  VEC(struct saver_names) savers; /* the collection `savers` */
  VEC(struct asset) assets;
  VEC(struct object) objects;
  VEC(struct captures) captures;
  VEC(struct method) methods;
  const char *tags;     /* given by whoever reads it: which graph of a SavedModel, or NULL */
  const char *tag_sets; /* those that there are, when there are several, for people; or NULL */
  const char *sha256;   /* of the file's bytes (a SavedModel: of saved_model.pb), hex */
};

void model_deinit(struct model *model);
const struct attr_value *attr_find(const struct attr *attrs, uint32_t count, const char *name); /* NULL when absent */
static inline struct attr attr_of_int(const char *name, int64_t i) {
  return (struct attr){.name = name, .value = {.kind = ATTR_INT, .i = i}};
}
static inline struct attr attr_of_type(const char *name, int64_t dtype) {
  return (struct attr){.name = name, .value = {.kind = ATTR_TYPE, .i = dtype}};
}
struct attr attr_of_types(struct arena *arena, const char *name, const uint8_t *dtypes, uint32_t count); /* a list(type) */
/* Where the user's program made a node (of a function's body, or "" for the graph's own); NULL when the graph does not say. */
const char *graph_place(const struct graph *graph, const char *node, const char *function);
uint32_t graph_find(const struct graph *graph, const char *name); /* NO_NODE when absent */
/* "x" or "x:0" -> edge; NOT_FOUND names it */
status graph_find_output(const struct graph *graph, const char *tensor, struct edge *out);
/* Nodes in an order in which inputs and controls come first; back edges of loops (inputs of Merge that come from
 * NextIteration) do not count. INVALID_ARGUMENT naming a node on a cycle. `order` has nodes.count places. */
status graph_order(const struct graph *graph, uint32_t *order);

#endif
