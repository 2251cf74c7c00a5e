/* own_state.h: what a driver has of its own beside the variables that others hold: states of its random generators, places
 * of its iterators. Told to a holder before each step (driver_state.h), and put back where a process goes on: a step that
 * is tried again draws the same numbers and reads the same elements.
 *
 * Threads: the driver's, but own_state_offer (the caller's lock covers it and own_state_resume). Owner: the course. */
#ifndef TFC_RUNTIME_PROCESS_OWN_STATE_H
#define TFC_RUNTIME_PROCESS_OWN_STATE_H

#include "runtime/step/driver_state.h"
#include "runtime/step/task.h"
#include <stdbool.h>

struct own_state {
  struct task *task;
  struct driver_states noted;   /* by this process: before the step that was begun last */
  struct driver_states offered; /* by the holder */
  bool is_too_large;            /* said */
};

/* All zero but `task` has nothing. */
void own_state_deinit(struct own_state *own);
/* As it is now, before this step. *out: what is to be told, valid until the next call; NULL: nothing. RESOURCE_EXHAUSTED. */
status own_state_note(struct own_state *own, uint32_t command, uint64_t serial, const struct driver_state **out);
/* The holder's word; RESOURCE_EXHAUSTED. */
status own_state_offer(struct own_state *own, const struct driver_state *state);
/* Puts the task to where it was before this step: what this process has noted of it, else what was offered. *is_early: that
 * is as before the step in front of it. The command before this one had `ended` steps. */
status own_state_resume(struct own_state *own, uint32_t command, uint64_t serial, uint64_t ended, bool *is_early);

#endif
