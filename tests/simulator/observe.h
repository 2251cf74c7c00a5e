/* observe.h: looking into simulated tasks: the values of their variables. */
#ifndef TFC_TESTS_SIMULATOR_OBSERVE_H
#define TFC_TESTS_SIMULATOR_OBSERVE_H

#include <stdint.h>

#include "tests/simulator/process.h"

struct observed {
  const char *name;
  int64_t count;
  float *values;
};

/* The value that the process's task has now, or had when it was destroyed; NULL: none. */
const struct observed *observe(const struct process *process, const char *variable);

/* Calls for each value that it had when it was destroyed. */
void observe_all(const struct process *process, void (*see)(void *self, const struct observed *observed), void *self);

/* Whether a task that runs has done all its phases, and says so to the others. */
bool observe_finished(const struct process *process);

#endif
