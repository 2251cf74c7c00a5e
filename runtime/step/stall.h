/* stall.h: who has waited too long, for what, and who holds it up: decided here, from what is handed in.
 *
 * A task keeps one of these: its own waits as they were seen last, and what the other tasks have told of theirs. From both follow the line
 * that it says (after 10 s, again when the answer changes, else once a minute), what it tells the others, and whether tasks
 * wait for each other in a ring. No clock, no thread, no I/O: times are handed in. Owner and thread: the caller's, one at a time.
 */
#ifndef TFC_RUNTIME_STEP_STALL_H
#define TFC_RUNTIME_STEP_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

#define STALL_WAITS 16   /* of a task at once: the oldest */
#define STALL_HOLDERS 16 /* tasks that hold a wait up */
#define STALL_TEXT 480
#define STALL_MESSAGE_BYTES 16384
#define STALL_SAY_MS 10000    /* contract: whoever waits longer says so */
#define STALL_TELL_MS 8000    /* the others hear of it before they say a line themselves */
#define STALL_AGAIN_MS 60000  /* the same answer */
#define STALL_CHANGED_MS 2000 /* another answer, at most so often */

enum stall_kind {
  STALL_VALUE,    /* a value of another task's part of the same step */
  STALL_PART,     /* that the holders end their parts of the step */
  STALL_RESOURCE, /* in something that steps share (queue, accumulator, barrier): any of the holders could end it */
  STALL_ROUND,    /* in a round (collective): every holder has to come */
  STALL_PEER,     /* for a task, outside of steps */
  STALL_CALL,     /* in a host call that waits for no task */
};

struct stall_wait {
  uint64_t step;   /* 0: of none */
  uint64_t place;  /* tells the waits of a step apart: an instruction */
  uint32_t driver; /* of the step; without one the task itself */
  enum stall_kind kind;
  uint32_t holders[STALL_HOLDERS], holder_count; /* tasks; VALUE, PART, PEER: that owe it; RESOURCE, ROUND: whose steps do */
  uint64_t since_ms;                             /* set here: when it was seen first */
  char what[STALL_TEXT];                         /* "waits for 'w/read' of /job:ps/task:0 in 'train'" */
};

struct stall;
/* self: the own task's number; names: of all of them ("worker_0"), kept by reference. RESOURCE_EXHAUSTED without memory. */
status stall_create(uint32_t self, uint32_t task_count, const char *const *names, struct stall **out);
/* Accepts NULL. */
void stall_destroy(struct stall *stall);

/* What the task waits for now (since_ms is not read): what was there the last time keeps its beginning. */
void stall_see(struct stall *stall, uint64_t now_ms, const struct stall_wait *waits, uint32_t count);
/* How a task looks from here, for people: "is not connected"; "" when there is nothing to be said. Copied. */
void stall_note(struct stall *stall, uint32_t task, const char *state);
/* What another task has told. INVALID_ARGUMENT: no such message; nothing is changed then. */
status stall_hear(struct stall *stall, uint64_t now_ms, uint32_t from, const void *data, size_t size);
/* What the others are to be told now; 0: nothing. data: STALL_MESSAGE_BYTES. */
size_t stall_tell(struct stall *stall, uint64_t now_ms, void *data);
/* Whether a line is to be said now, and which; clock_s: seconds of the local day, for people. */
bool stall_say(struct stall *stall, uint64_t now_ms, uint32_t clock_s, char *line, size_t size);
/* All waits of at least min_ms at any time, oldest first, in the same words; "" when there is none. */
void stall_report(const struct stall *stall, uint64_t now_ms, uint32_t clock_s, uint64_t min_ms, char *out, size_t size);

#endif
