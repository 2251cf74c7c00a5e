/* own_state.h: what a driver has of its own beside the variables that others hold: states of its random generators, places
 * of its iterators. Told to a holder before each step (driver_state.h), and put back where a process goes on: a step that
 * is tried again draws the same numbers and reads the same elements. Where a job begins again, those that lived on begin
 * with what they were started with.
 *
 * Threads: the driver's, but own_state_offer (the caller's lock covers it and own_state_resume). Owner: the course. */
#ifndef TFC_RUNTIME_PROCESS_OWN_STATE_H
#define TFC_RUNTIME_PROCESS_OWN_STATE_H

#include "base/wire.h"
#include "runtime/step/driver_state.h"
#include "runtime/step/task.h"
#include <stdbool.h>

struct own_state {
  struct task *task;
  struct driver_states noted;   /* by this process: before the step that was begun last */
  struct driver_states offered; /* by the holder */
  struct wire_buffer born;      /* when nothing had been run */
  struct wire_buffer marked;    /* before what is tried until it ends well */
  struct wire_buffer first;     /* before its first step: behind what `init` has drawn */
  bool is_too_large;            /* said */
};

/* All zero but `task` has nothing. */
void own_state_deinit(struct own_state *own);
/* Nothing has been run: what `init` draws from. RESOURCE_EXHAUSTED. */
status own_state_born(struct own_state *own);
/* `init` is to be run, for the first time or because the job may begin again: its generators are as they were then. */
status own_state_rebirth(struct own_state *own);
/* The same for what is run once in a process: as it is now; and back to that. */
status own_state_mark(struct own_state *own);
status own_state_back(struct own_state *own);
/* Before the first step of this process, when it has been initialised. RESOURCE_EXHAUSTED. */
status own_state_first(struct own_state *own);
/* As it is now, before this step. *out: what is to be told, valid until the next call; NULL: nothing. RESOURCE_EXHAUSTED. */
status own_state_note(struct own_state *own, uint32_t command, uint64_t serial, const struct driver_state **out);
/* The holder's word; RESOURCE_EXHAUSTED. */
status own_state_offer(struct own_state *own, const struct driver_state *state);
/* Puts the task to where it was before this step: what this process has noted of it, else what was offered, else, of a first step, what
 * own_state_first has. *is_early: that is as before the step in front of it. The command before this one had `ended` steps. ABORTED: nobody
 * has it: who has answered goes back to a checkpoint yet. */
status own_state_resume(struct own_state *own, uint32_t command, uint64_t serial, uint64_t ended, bool *is_early);

#endif
