/* variable.h: the state of a task: named tensors that outlive steps.
 *
 * Reading gives a counted reference of the variable's memory, which later updates change in place; an assignment of
 * another shape puts new memory in its place. Updates hold the variable's lock, so that none is lost; readers do not:
 * a step that reads while another updates may see both old and new elements, as in TensorFlow.
 */
#ifndef TFC_RUNTIME_MEMORY_VARIABLE_H
#define TFC_RUNTIME_MEMORY_VARIABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/program/program.h"

struct variable {
  const char *name, *container;
  enum dtype dtype;
  bool has_shape;           /* else any shape may be assigned */
  bool is_resource;         /* does not exist before its first assignment */
  struct shape shape;
  pthread_mutex_t lock;     /* updates; and `value` itself */
  struct tensor *value;     /* NULL: no memory yet */
  atomic_bool initialized;
  bool restored;            /* from a checkpoint, when the task started */
};

/* With the initial value, if the program has one. */
status variable_init(struct variable *variable, const struct program *program, uint32_t number);
void variable_deinit(struct variable *variable);

/* One reference of the current value. FAILED_PRECONDITION `Attempting to use uninitialized value NAME`. */
status variable_read(struct variable *variable, struct tensor **out);
/* The same for a kernel that is about to use it, without the value; NOT_FOUND when it is a resource: only reading one that is not there is a
 * failed precondition. */
status variable_check(struct variable *variable);

/* Copies the elements (strings with their bytes). INVALID_ARGUMENT when the shape is fixed and differs. */
status variable_assign(struct variable *variable, const struct shape *shape, const void *data);

/* It has no value any more; false: it had none. */
bool variable_forget(struct variable *variable);

/* As it was when the program was loaded. Without memory it has no value. */
void variable_reload(struct variable *variable, const struct program *program, uint32_t number);

/* Memory for a value of the shape that a kernel is about to write; the caller holds the lock. */
status variable_prepare(struct variable *variable, const struct shape *shape);

#endif
