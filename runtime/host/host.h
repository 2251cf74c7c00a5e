/* host.h: what a host function sees: ops that are no kernels (strings, queues, files, tables, printing).
 *
 * host.def lists them: one row each, name and function. A function takes its inputs as tensors (borrowed for the call),
 * its attributes by name, and sets every output to a tensor of the compiled dtype and rank; the step checks that shapes
 * fit and binds the sizes that were not known. Its errors get the node's name and op in front.
 *
 * A function that has to wait (a queue) sets `pending` and `withdraw`, keeps the call, returns OK, and finishes it later,
 * from any thread, with host_finish. Functions are called from many steps at once.
 */
#ifndef TFC_RUNTIME_HOST_HOST_H
#define TFC_RUNTIME_HOST_HOST_H

#include <stdbool.h>
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/host/inbox.h"
#include "runtime/program/program.h"

struct task;
struct step;
struct host_call {
  struct inbox_item item; /* first: how a finished call is told */
  struct inbox *inbox;
  struct task *task;
  const struct program *program;
  const struct program_instr *instr;
  struct step *step;           /* for functions that run parts of the instruction */
  const struct tensor *inputs; /* borrowed: not counted */
  struct tensor *const *held;  /* the counted tensor behind an input, or NULL */
  struct tensor **outputs;     /* to be set, one reference each */
  uint32_t input_count, output_count;
  uint32_t driver; /* the task that drives the step */
  /* waiting */
  bool pending;
  bool (*withdraw)(struct host_call *call); /* gives the wait up: true when host_finish will not be called any more */
  void *wait;                               /* the waiter's own */
  void (*finished)(struct host_call *call); /* a call within a call: told instead of the inbox, by the thread that ends it */
  status code;                              /* result of a call that was pending, with its text */
  char text[512];
};
typedef status (*host_function)(struct host_call *call);

/* NULL when there is no such row. */
host_function host_find(const char *name);

/* Ends a pending call: outputs are set when code is OK. */
void host_finish(struct host_call *call, status code, const char *text);

/* A counted reference of input i: the tensor itself, or a copy when its memory is the step's. */
status host_keep_input(const struct host_call *call, uint32_t i, struct tensor **out);
/* Whether input i is a tensor that only this call sees, now and later: it may be changed and given back. */
bool host_owns_input(const struct host_call *call, uint32_t i);
/* Creates output i. */
status host_make_output(struct host_call *call, uint32_t i, enum dtype dtype, const struct shape *shape);

/* Output i: a scalar bool, int32 or int64. */
status host_give_number(struct host_call *call, uint32_t i, enum dtype dtype, int64_t value);

/* The resource that attributes `container` and `shared_name` name; without a name it is the node's own. */
struct resource;
struct resource_maker;
status host_get_resource(struct host_call *call, const struct resource_maker *maker, void *argument, bool *is_new, struct resource **out);
/* Output 0: a scalar of dtype resource, the handle. */
status host_make_handle(struct host_call *call, const struct resource *resource);
/* The two in one, for resources that are as whoever came first has made them. */
status host_give_resource(struct host_call *call, const struct resource_maker *maker, void *argument);
/* Output 0: the handle of a new resource that no name finds: it goes with the last reference to its handle. */
status host_make_anonymous(struct host_call *call, const struct resource_maker *maker, void *argument, struct resource **out);
/* The resource whose handle input i is. */
status host_find_resource(const struct host_call *call, uint32_t i, const char *kind, struct resource **out);

/* Attributes; `otherwise` when absent. */
const struct program_attr *host_attr(const struct host_call *call, const char *name);
int64_t host_attr_int(const struct host_call *call, const char *name, int64_t otherwise);
double host_attr_float(const struct host_call *call, const char *name, double otherwise);
struct string_view host_attr_string(const struct host_call *call, const char *name, const char *otherwise);
/* The shape that an attribute, or an element of a list of shapes, says: open sizes are -1; rank -1: it says none, or is
 * NULL. UNIMPLEMENTED above LIMIT_RANK. */
status host_read_shape(const struct host_call *call, const struct program_attr *attr, struct shape *out);
/* "queue_1": the name of the node, for errors. */
const char *host_node_name(const struct host_call *call);

/* One integer from a scalar of int32 or int64. */
int64_t host_scalar_int(const struct tensor *tensor);
struct string_view host_scalar_string(const struct tensor *tensor);

#endif
