/* variable.h: the state of a task: named tensors that outlive steps.
 *
 * Reading gives a counted reference of the variable's memory, which later updates change in place; an assignment of
 * another shape puts new memory in its place. Updates hold the variable's lock, so that none is lost; readers do not:
 * a step that reads while another updates may see both old and new elements, as in TensorFlow.
 */
#ifndef TFC_RUNTIME_MEMORY_VARIABLE_H
#define TFC_RUNTIME_MEMORY_VARIABLE_H

#include "base/panels.h"
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/program/program.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* What a checkpoint has of the value at its moment. */
enum aside {
  ASIDE_NONE,   /* nothing: it had none, or there is no checkpoint under way */
  ASIDE_MARKED, /* it is still the variable's: to be copied before it changes */
  ASIDE_COPIED,
  ASIDE_FAILED, /* there was no memory for a copy */
};

struct variable {
  const char *name, *container;
  const char *slice; /* "10 4 0,5:0,4": it is this part of a partitioned variable; "" */
  enum dtype dtype;
  bool has_shape;       /* else any shape may be assigned */
  bool is_resource;     /* does not exist before its first assignment */
  struct shape shape;   /* of `value` */
  struct panels panels; /* how it lies; of rank 0: dense */
  struct shape dense;   /* in panels: the shape that it is declared with */
  pthread_mutex_t lock; /* updates; and `value` itself */
  struct tensor *value; /* NULL: no memory yet */
  atomic_bool initialized;
  bool restored;          /* from a checkpoint, when the task started */
  enum aside aside_state; /* under the lock, like: */
  struct tensor *aside;   /* memory for a checkpoint's copy, kept from one to the next */
};

/* The state of a random generator: a task's own matter, no variable of the graph. */
#define VARIABLE_RANDOM "tfc-random" /* the container of such */
static inline bool variable_is_random(const struct variable *variable) { return strcmp(variable->container, VARIABLE_RANDOM) == 0; }

/* With the initial value, if the program has one. */
status variable_init(struct variable *variable, const struct program *program, uint32_t number);
void variable_deinit(struct variable *variable);
/* Another one of the same name, with the value as it is now. RESOURCE_EXHAUSTED. */
status variable_clone(struct variable *variable, struct variable *out);

/* The variable now has what its clone has, and the clone what the variable had. */
void variable_swap(struct variable *variable, struct variable *clone);

/* One reference of the current value. FAILED_PRECONDITION `Attempting to use uninitialized value NAME`. */
status variable_read(struct variable *variable, struct tensor **out);
/* The same for a kernel that is about to use it, without the value; NOT_FOUND when it is a resource: only reading one
 * that is not there is a failed precondition. */
status variable_check(struct variable *variable);

/* Its value as it is, for the caller alone; NULL: it has none. RESOURCE_EXHAUSTED. */
status variable_copy(struct variable *variable, struct tensor **out);
/* Copies the elements (strings with their bytes). INVALID_ARGUMENT when the shape is fixed and differs. */
status variable_assign(struct variable *variable, const struct shape *shape, const void *data);

/* The same of a value as a checkpoint has it: dense, of the declared shape. */
status variable_restore(struct variable *variable, const struct shape *shape, const void *data);

/* It has no value any more; false: it had none. */
bool variable_forget(struct variable *variable);

/* As it was when the program was loaded. Without memory it has no value. */
void variable_reload(struct variable *variable, const struct program *program, uint32_t number);

/* ---- a copy aside, of the value at one moment ----
 * Mark all variables while no step is amid its updates; whoever changes one first copies it, a thread that is in no
 * hurry takes the others. */

/* Memory for a copy of the value as it is now, or as it is declared, touched: so that copying is only copying. Without
 * memory nothing is done. */
void variable_prepare_aside(struct variable *variable);
void variable_mark(struct variable *variable);
/* One reference of the copy, dense: NULL when it had no value at the moment of the mark. It is not changed before the next mark.
 * RESOURCE_EXHAUSTED: there was no memory for it. */
status variable_take_aside(struct variable *variable, struct tensor **out);
/* The caller holds the lock. */
void variable_copy_aside(struct variable *variable);
/* Before each change of the value or its memory; the caller holds the lock. */
static inline void variable_will_change(struct variable *variable) {
  if (__builtin_expect(variable->aside_state == ASIDE_MARKED, 0))
    variable_copy_aside(variable);
}

/* Memory for a value of the shape that a kernel is about to write; the caller holds the lock. */
status variable_prepare(struct variable *variable, const struct shape *shape);

#endif
