/* exchange.h: what running a step needs of the other tasks, as a struct of functions: runtime/cluster/peer.c implements it over
 * HTTP/2, runtime/step/exchange_local.c for a single task, tests in memory with a seeded order.
 *
 * Step: the driver (the task that runs an entry's phase, or serves a client) draws a step id unique over the cluster
 * (its task number in the upper 16 bits), calls `start` for each other task with a part in the entry, runs its own part,
 * sends feeds and receives fetches as transfers, and ends when each of those tasks has reported `done`. Every value that
 * crosses a cut is a transfer with a number that is unique in the entry; it is pushed when ready and waits at the receiver.
 *
 * Threads: every function may be called from any thread. The sink's functions are called from the exchange's thread and
 * must not wait.
 */
#ifndef TFC_RUNTIME_STEP_EXCHANGE_H
#define TFC_RUNTIME_STEP_EXCHANGE_H

#include <stdbool.h>
#include "base/status.h"
#include "base/tensor.h"

/* Command and serial: a driver numbers the steps of its command that change state, over all its phases, from 1; serial 0: a step that
 * changes nothing, or a client's. A driver that had finished starts the next command.
 *
 * What the driver asks of the others' parts beside running: bits of the entry's number in `start`. */
#define START_TRACED UINT32_C(0x80000000)         /* record it: what was recorded comes as transfer TRANSFER_STATS + task, before `done` */
#define START_REPORTS_MEMORY UINT32_C(0x40000000) /* out of memory: name the largest tensors */
#define START_PARTIAL UINT32_C(0x20000000)        /* of a partial run: values come in any order */
#define START_ONCE UINT32_C(0x10000000)           /* `init` of the job: who has run it changes nothing */
#define START_FLAGS (START_TRACED | START_REPORTS_MEMORY | START_PARTIAL | START_ONCE)
#define TRANSFER_STATS UINT32_C(0xf0000000)
#define TRANSFER_STATE \
  UINT32_C(0xe0000000) /* of a step of the receiver: which variables have a value; + 1 + number: a variable of another replica */

/* What the exchange tells the task. */
struct exchange_sink {
  void *self;
  /* Task `driver` has begun step `step` of entry `entry`: run our part of it. */
  void (*on_start)(void *self, uint32_t driver, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial);
  /* A value of a step; the sink owns one reference. It may come before on_start. */
  void (*on_tensor)(void *self, uint32_t from, uint64_t step, uint32_t transfer, struct tensor *tensor);
  /* Task `from` has run its part of a step that we drive; code OK or the error with its text. */
  void (*on_done)(void *self, uint32_t from, uint64_t step, status code, const char *text);
  /* The driver gives a step up: stop our part with CANCELLED. */
  void (*on_cancel)(void *self, uint64_t step);
  /* A peer was lost, for the reason given: steps that need it fail with UNAVAILABLE. */
  void (*on_lost)(void *self, uint32_t task, const char *reason);
  /* A peer has run all its phases: it begins no more steps. NULL: nobody wants to know. */
  void (*on_finished)(void *self, uint32_t task);
  /* A client of another task wants these containers (one in a line) forgotten. NULL: nothing is. */
  void (*on_reset)(void *self, const char *containers);
  /* The link to a task is up. is_new: the task was not here before, or it is another incarnation than the one that was (which has been told
   * as lost): nothing that was said to the old one holds. NULL: nobody wants to know. */
  void (*on_joined)(void *self, uint32_t task, bool is_new);
  /* A few times a second, whatever happens. NULL: nobody wants to know. */
  void (*on_tick)(void *self);
  /* This process has no place in the cluster, another one has its name: what runs is to end. NULL: nothing does. */
  void (*on_refused)(void *self);
  /* A peer says good-bye: right before on_lost. gave_up: it leaves its work undone, for good. NULL: nobody wants to know. */
  void (*on_left)(void *self, uint32_t task, bool gave_up);
  /* A value is about to come: not OK, and it is not taken, the link to its sender is broken off for that reason. NULL: all are taken. */
  status (*admits)(void *self, uint32_t from, uint64_t step, uint32_t transfer, enum dtype dtype, const struct shape *shape);
};

struct exchange {
  void *self;
  void (*start)(void *self, uint32_t task, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial);
  /* Takes one reference of the tensor and gives it back when the other task has acknowledged it: its data must not change until then
   * (tensor->references tells). */
  void (*send)(void *self, uint32_t task, uint64_t step, uint32_t transfer, struct tensor *tensor);
  void (*done)(void *self, uint32_t task, uint64_t step, status code, const char *text);
  void (*cancel)(void *self, uint32_t task, uint64_t step);
  void (*reset)(void *self, uint32_t task, const char *containers); /* NULL: there are no others */
  /* What we wait for will come to nothing: while the task is cut off, it is lost after seconds, not after the time-out. NULL: as reset. */
  void (*hurry)(void *self, uint32_t task);
};

#endif
