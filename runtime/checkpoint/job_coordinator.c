/* job_coordinator.c: the task that decides for the job: whom it hears, who may leave, and when it is time for what
 * (job_history.c, job_attempt.c). */
#include <stdlib.h>

#include "runtime/checkpoint/job_coordinator.h"
#include "runtime/cluster/cluster.h"
#include "runtime/program/fault.h"
#include "runtime/step/task_state.h"

#define CHIEF_MS 1000 /* so long the chief may be away before others are told in its place */

void coordinator_tell_holders(struct job *job, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    if (coordinator->holder_tasks[i] != job->self)
      job_send(job, coordinator->holder_tasks[i], message);
  if (job->is_holder) /* the others have heard while this one works */
    job_send(job, job->self, message);
}

static bool tell_leave(struct job *job, uint32_t task) {
  const struct job_coordinator *coordinator = job->coordinator;
  return job_send(job, task, &(struct job_message){.kind = JOB_LEAVE, .id = coordinator->newest, .history = coordinator->history});
}

/* Somebody with phases is there who may still take steps, or waits until they are saved: holders stay. */
static bool somebody_works(const struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &job->coordinator->seen[i];
    if (seen->has_joined && seen->has_phases && !seen->has_left && cluster_is_linked(job->cluster, i))
      return true;
  }
  return false;
}

static void let_leave(struct job *job, bool have_phases, bool only_covered) {
  struct job_coordinator *coordinator = job->coordinator;
  for (uint32_t i = 0; i < job->task_count; i++) {
    struct job_seen *seen = &coordinator->seen[i];
    if (!seen->wants_to_leave || seen->has_phases != have_phases || (only_covered && !seen->is_covered && !FAULT(14)))
      continue;
    tell_leave(job, i);
    seen->wants_to_leave = seen->is_covered = false;
    seen->has_left = true;
  }
}

void coordinator_let_leave(struct job *job, bool only_covered) {
  let_leave(job, true, only_covered);
  if (!somebody_works(job))
    let_leave(job, false, only_covered);
}

static bool somebody_wants_to_leave(const struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++)
    if (job->coordinator->seen[i].wants_to_leave)
      return true;
  return false;
}

/* No more checkpoints: some holder has left, or does not come back. */
static bool holders_have_gone(const struct job *job) {
  const struct job_coordinator *coordinator = job->coordinator;
  bool was_up;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    if (coordinator->holder_tasks[i] != job->self &&
        (coordinator->seen[coordinator->holder_tasks[i]].has_left ||
         cluster_missing_ms(job->cluster, coordinator->holder_tasks[i], &was_up) >= job->timeout_ms))
      return true;
  return false;
}

/* A holder has said good-bye: it had been let go, as the work was done, and one with phases came back just then, whose steps all are in a
 * checkpoint. There is nothing to be added to that, nor anybody to do it with. */
static bool holder_has_left(const struct job *job) {
  const struct job_coordinator *coordinator = job->coordinator;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    if (coordinator->seen[coordinator->holder_tasks[i]].has_left && cluster_has_left(job->cluster, &coordinator->holder_tasks[i], 1))
      return true;
  return false;
}

/* A last one, when this task is about to end. */
static bool wants_last(struct job *job) {
  bool is_broken = holders_have_gone(job);
  pthread_mutex_lock(&job->lock);
  if (!*job->options.folder || !job->coordinator->has_history || is_broken)
    job->wants_last = false;
  bool wants = job->wants_last;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
  return wants;
}

bool coordinator_is_empty(struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &job->coordinator->seen[i];
    bool has_left = seen->has_left || seen->is_let_go; /* of the coordinator before this one */
    bool is_to_say_so = *job->options.folder && seen->has_phases && !seen->is_gone;
    bool may_ask = !seen->has_joined || (has_left ? is_to_say_so : seen->is_holder || seen->has_phases);
    if (i != job->self && may_ask && cluster_is_linked(job->cluster, i))
      return false;
  }
  return true;
}

/* What one of the holders has lost can be put back only while all are there. */
static bool may_have_history(const struct job *job) {
  const struct job_coordinator *coordinator = job->coordinator;
  bool all = true;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    all = all && (coordinator->holder_tasks[i] == job->self || cluster_is_linked(job->cluster, coordinator->holder_tasks[i]));
  return all || FAULT(51);
}

/* This task has seen the end of all work: a holder that was started again meanwhile cannot, nor need it be as it was if one has left. */
static void end_holders(struct job *job) {
  struct job_coordinator *coordinator = job->coordinator;
  pthread_mutex_lock(&job->lock);
  bool is_over = job->is_over && !job->wants_last;
  pthread_mutex_unlock(&job->lock);
  bool waits = !coordinator->has_history && may_have_history(job);
  if (!is_over || waits || coordinator->cut.id || somebody_works(job))
    return;
  for (uint32_t i = 0; i < coordinator->holder_count; i++) {
    uint32_t task = coordinator->holder_tasks[i];
    if (task == job->self || coordinator->seen[task].has_left)
      continue;
    coordinator->seen[task].has_left = tell_leave(job, task);
  }
}

/* The chief has left, and those who come later have not heard from it that all is initialised: the holders know. */
static void stand_in_for_chief(struct job *job, uint64_t now_ms) {
  struct job_coordinator *coordinator = job->coordinator;
  bool was_up, is_ready = true;
  if (!coordinator->has_history || coordinator->has_said_ready || now_ms - coordinator->asked_ms < CHIEF_MS ||
      cluster_missing_ms(job->cluster, job->chief, &was_up) < CHIEF_MS)
    return;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    is_ready = is_ready && coordinator->seen[coordinator->holder_tasks[i]].is_initialised;
  coordinator->asked_ms = now_ms;
  coordinator->has_said_ready = is_ready;
  if (is_ready)
    cluster_announce_ready(job->cluster, true);
  else
    coordinator_tell_holders(job, &(struct job_message){.kind = JOB_ASK});
}

void coordinator_tick(struct job *job, uint64_t now_ms) {
  struct job_coordinator *coordinator = job->coordinator;
  coordinator_ask_all(job, now_ms);
  coordinator_give_up_late(job, now_ms);
  stand_in_for_chief(job, now_ms);
  end_holders(job);
  attempt_apply(job, cut_tick(&coordinator->cut, now_ms));
  bool wants_one = wants_last(job);
  if (!coordinator->has_history || coordinator->cut.id || now_ms < coordinator->retry_ms)
    return;
  if (!*job->options.folder || holder_has_left(job)) {
    coordinator_let_leave(job, false);
    return;
  }
  atomic_store(&job->due_steps, job->options.save_steps ? coordinator->steps_saved + job->options.save_steps : 0);
  if (wants_one || somebody_wants_to_leave(job) || attempt_is_due(job, now_ms))
    attempt_begin(job, now_ms, wants_one);
}

uint64_t coordinator_due_ms(const struct job *job, uint64_t now_ms) {
  const struct job_coordinator *coordinator = job->coordinator;
  uint64_t due_ms = cut_due_ms(&coordinator->cut);
  if (due_ms)
    return due_ms;
  if (coordinator->retry_ms > now_ms)
    return coordinator->retry_ms;
  return job->options.save_ms && coordinator->has_history ? coordinator->begun_ms + (uint64_t)job->options.save_ms : UINT64_MAX;
}

static void take_leave_ask(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_seen *seen = &job->coordinator->seen[from];
  if (!job->coordinator->has_history)
    return;
  if (message->history != job->coordinator->history) { /* its steps may have been undone, and it has not heard of it */
    coordinator_tell_run(job, from);
    return;
  }
  seen->wants_to_leave = !seen->has_left;
  if (seen->has_left) /* it asked again before it heard */
    tell_leave(job, from);
}

void coordinator_message(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  if (from >= job->task_count)
    return;
  uint32_t holder = coordinator->seen[from].holder;
  bool is_holder = coordinator->seen[from].is_holder;
  switch (message->kind) {
  case JOB_JOIN: coordinator_take_join(job, from, message); break;
  case JOB_RESTORED: coordinator_take_restored(job, from, message); break;
  case JOB_GIVE_UP:
    if (is_holder && coordinator->is_restoring && message->history == coordinator->history)
      coordinator_give_up(job, message->text);
    break;
  case JOB_LEAVE_ASK: take_leave_ask(job, from, message); break;
  case JOB_GONE: gone_take(job, from, message); break;
  case JOB_FROZEN:
    if (is_holder)
      attempt_take_frozen(job, holder, message);
    break;
  case JOB_TAKEN:
    if (is_holder)
      attempt_apply(job, cut_taken(&coordinator->cut, holder, message->id));
    break;
  case JOB_DONE:
    if (is_holder)
      attempt_apply(job, cut_done(&coordinator->cut, holder, message->id));
    break;
  case JOB_REFUSED:
    if (is_holder)
      attempt_take_refused(job, holder, message);
    break;
  default: break;
  }
}

status coordinator_create(struct job *job) {
  struct job_coordinator *coordinator = calloc(1, sizeof *coordinator);
  job->coordinator = coordinator;
  if (!coordinator)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  coordinator->seen = calloc(job->task_count, sizeof *coordinator->seen);
  coordinator->holders = calloc((size_t)job->holder_total + 1, sizeof *coordinator->holders);
  coordinator->holder_tasks = calloc((size_t)job->holder_total + 1, sizeof *coordinator->holder_tasks);
  coordinator->ledgers = calloc((size_t)job->holder_total + 1, sizeof *coordinator->ledgers);
  if (!coordinator->seen || !coordinator->holders || !coordinator->holder_tasks || !coordinator->ledgers)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  if (job->holder_total > CUT_HOLDERS_MAX)
    return fail(UNIMPLEMENTED, "checkpoints of more than %d tasks with variables", CUT_HOLDERS_MAX);
  for (uint32_t i = 0; i < job->task_count; i++) {
    if (!(program_task(job->task->program, i)->flags & PROGRAM_TASK_HOLDS))
      continue;
    coordinator->seen[i].is_holder = true;
    coordinator->seen[i].holder = coordinator->holder_count;
    coordinator->holder_tasks[coordinator->holder_count++] = i;
  }
  coordinator->cut.holder_count = coordinator->holder_count;
  return OK;
}

void coordinator_destroy(struct job *job) {
  struct job_coordinator *coordinator = job->coordinator;
  if (!coordinator)
    return;
  for (uint32_t i = 0; coordinator->ledgers && i < coordinator->holder_count; i++)
    ledger_deinit(&coordinator->ledgers[i]);
  free(coordinator->ledgers);
  vec_free(&coordinator->gone);
  free(coordinator->seen);
  free(coordinator->holders);
  free(coordinator->holder_tasks);
  free(coordinator);
  job->coordinator = NULL;
}
