/* rendezvous.h: where the values of a step that come from other parts wait until they are asked for.
 *
 * A value may come before the step is known here, when its driver is a third task, and after it has ended: the last steps that ended are
 * remembered, so that what comes late is dropped. What waits for steps that have not begun has RENDEZVOUS_EARLY_BYTES together.
 * Threads: any. Owner: the task.
 */
#ifndef TFC_RUNTIME_STEP_RENDEZVOUS_H
#define TFC_RUNTIME_STEP_RENDEZVOUS_H

#include <stdbool.h>
#include "base/status.h"
#include "base/tensor.h"

struct rendezvous;

/* Who waits for a value without a thread: told once, from the thread that brings the value or the failure. */
struct rendezvous_waiter {
  void (*wake)(struct rendezvous_waiter *waiter);
  struct tensor *tensor; /* one reference, when the wait ended well */
  status code;           /* else why; the text is the step's: rendezvous_reason */
};

status rendezvous_create(struct rendezvous **out);
void rendezvous_destroy(struct rendezvous *r);

#define RENDEZVOUS_EARLY_BYTES (UINT64_C(64) << 20) /* beside the first of them, which may be as large as it likes */

/* The step is known here: what waits for it is no longer early. */
void rendezvous_begin(struct rendezvous *r, uint64_t step);
/* Whether a value of so many bytes may come for the step now. */
bool rendezvous_has_room(struct rendezvous *r, uint64_t step, uint64_t bytes);
/* Steps of a driver that have not begun will not: what came for them is dropped. */
void rendezvous_drop_early(struct rendezvous *r, uint32_t driver);
/* As rendezvous_put, of another task. For a step that has not begun it is dropped, kept and counted, or just kept. */
enum rendezvous_early { EARLY_DROPPED, EARLY_COUNTED, EARLY_KEPT };
void rendezvous_deliver(struct rendezvous *r, uint64_t step, uint32_t transfer, struct tensor *tensor, enum rendezvous_early early);

/* Takes one reference. */
void rendezvous_put(struct rendezvous *r, uint64_t step, uint32_t transfer, struct tensor *tensor);
/* Waits for the value; one reference to the caller. The code and text of rendezvous_abort when that came first. */
status rendezvous_take(struct rendezvous *r, uint64_t step, uint32_t transfer, struct tensor **out);
/* The value if it is here (one reference), else NULL. */
struct tensor *rendezvous_poll(struct rendezvous *r, uint64_t step, uint32_t transfer);
/* Sets waiter->tensor and returns true when the value is here; else keeps the waiter until it is told. */
bool rendezvous_ask(struct rendezvous *r, uint64_t step, uint32_t transfer, struct rendezvous_waiter *waiter);
/* Everyone who waits in the step, or will, gets the code and text. The first abort stays. */
void rendezvous_abort(struct rendezvous *r, uint64_t step, status code, const char *text);
/* fail()s with the reason of the abort; OK when there was none. */
status rendezvous_reason(struct rendezvous *r, uint64_t step);
/* The step is over here: drops what is left of it and what may still come. No waiter may be left. */
void rendezvous_end(struct rendezvous *r, uint64_t step);

#endif
