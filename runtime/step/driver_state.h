/* driver_state.h: what drivers have of their own (states of generators, places of iterators), as it was before a step.
 *
 * A driver that draws random numbers or reads a dataset tells one of the tasks that hold variables before each step, and
 * that task keeps the last two beside its ledger and in its checkpoint: of the step that is applied last the state before
 * it is there, and mostly that behind it, too. A driver that is started again goes on from there.
 *
 * Bytes to this module. No lock: the owner's (commit.h). */
#ifndef TFC_RUNTIME_STEP_DRIVER_STATE_H
#define TFC_RUNTIME_STEP_DRIVER_STATE_H

#include "base/status.h"
#include "base/vec.h"
#include <stddef.h>
#include <stdint.h>

#define DRIVER_STATE_MAX (24u << 10) /* bytes of one: two travel in control messages */

struct driver_state {
  uint32_t driver, command;
  uint64_t serial; /* it is as before this step; one behind the last of the command: at its end */
  size_t size;
  char *data;
};
struct driver_states {
  VEC(struct driver_state) items; /* of each driver at most two, the older one first */
};

/* All zero is empty. */
void driver_states_clear(struct driver_states *states);
/* Copied. RESOURCE_EXHAUSTED: what was there stays. */
status driver_states_put(struct driver_states *states, const struct driver_state *state);

/* Which of those of one driver goes with its step `serial` of the command: as before it, else as before the one in front
 * of it, which is then to be run once more. For the first step of a command: as at the end of the one before, which had
 * `ended` steps. NULL: none. */
const struct driver_state *driver_state_choose(const struct driver_states *states, uint32_t command, uint64_t serial, uint64_t ended);

#endif
