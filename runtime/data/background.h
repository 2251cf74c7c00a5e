/* background.h: what of an iterator goes on while steps run: reading ahead, calls of its functions.
 *
 * A background has a step of its own, which is given up when the iterator ends or the task stops, and jobs of the crew, its workers.
 * One thread at a time reads what the workers make. `lock` covers what both use; nobody waits or calls out with it held.
 *
 *   reader                                   worker
 *   lock; while (nothing is there)           for each piece of work: make it; lock; put it there; background_changed; unlock
 *           background_wait;                 nothing left: background_leave (the worker ends; a later need starts another one)
 *   take it; background_start; unlock
 */
#ifndef TFC_RUNTIME_DATA_BACKGROUND_H
#define TFC_RUNTIME_DATA_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>
#include "runtime/data/dataset.h"
#include "runtime/step/frame.h"

struct background {
  struct step step;
  struct host_call call;  /* of whoever asked first, but for the step: the one above */
  struct dataset_run run; /* what workers move cursors and call functions with */
  pthread_mutex_t lock;
  struct inbox inbox; /* the reader's */
  uint32_t workers;   /* under the lock */
};

/* A place that does not move, until background_destroy. RESOURCE_EXHAUSTED. */
status background_create(const struct dataset_run *run, struct background **out);
/* Gives the step up, waits until the workers have ended. Accepts NULL. */
void background_destroy(struct background *background);

/* The lock is held: one more worker, which runs work(self) on a thread of its own. False when there is no thread to be had. */
bool background_start(struct background *background, void (*work)(void *self), void *self);
/* A worker's last act, with the lock held, which it gives up. */
void background_leave(struct background *background);
/* Whether workers should end. */
bool background_is_over(const struct background *background);

/* The lock is held: there is something new for the reader. */
void background_changed(struct background *background);
/* The lock is held, but while it waits: until there may be something new. CANCELLED: the reader's own step was given up. */
status background_wait(struct background *background, const struct dataset_run *reader);

#endif
