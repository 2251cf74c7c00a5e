/* background.c: a step that nobody drives, and the jobs that run for it. */
#include "runtime/data/background.h"

#include <stdlib.h>
#include "runtime/step/crew.h"
#include "runtime/step/task_state.h"

status background_create(const struct dataset_run *run, struct background **out) {
  struct background *b = calloc(1, sizeof *b);
  if (!b)
    return fail(RESOURCE_EXHAUSTED, "no memory to work beside the step");
  const struct host_call *call = run->call;
  b->call =
    (struct host_call){.task = call->task, .program = call->program, .instr = call->instr, .driver = call->driver, .step = &b->step};
  b->run.call = &b->call;
  pthread_mutex_init(&b->lock, NULL);
  inbox_init(&b->inbox);
  step_begin_background(&b->step, call->task, call->step->entry);
  *out = b;
  return OK;
}

void background_destroy(struct background *b) {
  if (!b)
    return;
  step_fail(&b->step, CANCELLED, "the iterator has ended");
  for (;;) {
    pthread_mutex_lock(&b->lock);
    bool quiet = b->workers == 0;
    pthread_mutex_unlock(&b->lock);
    if (quiet)
      break;
    inbox_await_poke(&b->inbox);
  }
  step_end_background(&b->step);
  inbox_deinit(&b->inbox);
  pthread_mutex_destroy(&b->lock);
  free(b);
}

bool background_start(struct background *b, void (*work)(void *self), void *self) {
  b->workers++;
  if (crew_run(b->call.task->crew, work, self) == OK)
    return true;
  b->workers--;
  return false;
}

void background_leave(struct background *b) {
  b->workers--;
  inbox_poke(&b->inbox); /* before the lock goes: who destroys looks under it */
  pthread_mutex_unlock(&b->lock);
}

bool background_is_over(const struct background *b) { return atomic_load_explicit(&b->step.cancelled, memory_order_relaxed); }

void background_changed(struct background *b) { inbox_poke(&b->inbox); }

status background_wait(struct background *b, const struct dataset_run *reader) {
  struct step *step = reader->call->step;
  struct task *task = step->task;
  step_add_inbox(step, &b->inbox);
  if (!step->is_background)
    atomic_fetch_sub_explicit(&task->at_work, 1, memory_order_relaxed);
  pthread_mutex_unlock(&b->lock);
  inbox_await_poke(&b->inbox);
  pthread_mutex_lock(&b->lock);
  if (!step->is_background)
    atomic_fetch_add_explicit(&task->at_work, 1, memory_order_relaxed);
  step_remove_inbox(step, &b->inbox);
  return atomic_load(&step->cancelled) ? fail(CANCELLED, "the step was cancelled") : OK;
}
