/* ledger.h: which steps a task has applied, of each driver: what makes a step that comes twice count once.
 *
 * A driver numbers the steps of its command that change state from 1 (its *serial*); one that had finished begins the
 * next command. A task keeps the last serial that it has committed of each driver, beside its variables and in their
 * checkpoint. That is enough, because a driver begins step k + 1 only when all have reported k: a step is the next one,
 * or one that was there before, or something is wrong.
 *
 * A driver may have several streams of steps at once, its phases and its queue runners: the upper 8 bits of a serial
 * are the *lane*, 0 for the phases. Each lane counts for itself.
 *
 * Decisions only: no lock, no clock, no I/O. Owner: the task (commit.h), or whoever reads one from bytes. */
#ifndef TFC_RUNTIME_STEP_LEDGER_H
#define TFC_RUNTIME_STEP_LEDGER_H

#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEDGER_LANE_SHIFT 56
#define LEDGER_LANES_MAX 256
static inline uint32_t serial_lane(uint64_t serial) { return (uint32_t)(serial >> LEDGER_LANE_SHIFT); }
/* Which step of its lane it is. */
static inline uint64_t serial_count(uint64_t serial) { return serial & ((UINT64_C(1) << LEDGER_LANE_SHIFT) - 1); }
static inline uint64_t serial_of(uint32_t lane, uint64_t count) { return (uint64_t)lane << LEDGER_LANE_SHIFT | count; }

/* What a task has of one lane of a driver. */
struct ledger_row {
  uint32_t driver, lane;
  uint32_t command; /* counted from 1; 0: nothing was ever applied */
  bool finished;    /* the driver has said that this command is at its end */
  uint64_t last;    /* the step of the command that was committed last; 0: none */
  uint64_t open;    /* a step that has changed something and is not committed: it is under way, or its driver was lost; 0:
                    none */
};
struct ledger {
  bool initialised; /* `init` has been run to its end here */
  uint32_t count, capacity;
  struct ledger_row *rows; /* sorted by driver and lane */
};

/* All zero is an empty ledger. */
void ledger_deinit(struct ledger *ledger);
/* RESOURCE_EXHAUSTED: `to` is as it was. */
status ledger_copy(const struct ledger *from, struct ledger *to);

/* What is to be done with a step that a driver starts. */
enum ledger_verdict {
  LEDGER_RUN,   /* the next one */
  LEDGER_DRY,   /* it was applied: compute and send what others need of it, change nothing */
  LEDGER_GAP,   /* steps before it are missing: somebody has counted wrongly */
  LEDGER_STALE, /* of a command before the one that is under way */
};
enum ledger_verdict ledger_judge(const struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t serial);
/* The step is about to change something. RESOURCE_EXHAUSTED. */
status ledger_open(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t serial);
/* All that it changes is changed. RESOURCE_EXHAUSTED, but not after ledger_open. */
status ledger_commit(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t serial);
/* The driver begins no more steps of its command; false: it was lost before it left, whoever started it takes it for
 * unfinished. */
void ledger_finish(struct ledger *ledger, uint32_t driver, bool finished);
/* For a driver's own row: it goes on behind step `last` of the command, whatever it did before. RESOURCE_EXHAUSTED. */
status ledger_rewind(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t last_serial);
/* The row is at least here: an older one goes on behind this step. RESOURCE_EXHAUSTED. */
status ledger_raise(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t last_serial);
/* NULL: nothing was ever applied. Valid until the next change. */
const struct ledger_row *ledger_find(const struct ledger *ledger, uint32_t driver, uint32_t lane);

/* Where a driver goes on that all its holders have answered: rows[i] is what holder i has of its lane. The first step
 * that is missing anywhere of the newest command; step 1 of the next when all say that it has finished. */
struct ledger_next {
  uint32_t command;
  uint64_t count; /* of its lane, from 1 */
};
struct ledger_next ledger_next(const struct ledger_row *rows, uint32_t row_count);

/* As bytes: in checkpoints, and in answers to drivers. They may come from anywhere: DATA_LOSS when they are none; `out`
 * is untouched then. */
size_t ledger_byte_size(const struct ledger *ledger);
void ledger_write(const struct ledger *ledger, void *out);
status ledger_read(const void *data, size_t size, struct ledger *out);

#endif
