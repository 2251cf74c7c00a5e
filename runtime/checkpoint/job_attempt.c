/* job_attempt.c: an attempt at a checkpoint of all holders: begun when one is due, ended complete, or given up and made again
 * (cluster/cut.h decides, this tells). */
#include <stdlib.h>

#include "runtime/checkpoint/job_coordinator.h"
#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"

#define RETRY_MS 50          /* after an attempt that was given up */
#define FAILED_RETRY_MS 1000 /* after one that could not be written */
#define UNEVEN_MS 5000       /* a step that some holders lack does not come: the others go on without it */

void attempt_begin(struct job *job, uint64_t now_ms, bool is_last) {
  struct job_coordinator *coordinator = job->coordinator;
  uint64_t id = FAULT(11) && coordinator->last_id != coordinator->newest ? coordinator->last_id
                                                                         : history_next_id(coordinator->last_id, (uint32_t)job_random());
  if (cut_begin(&coordinator->cut, id, now_ms) != CUT_FREEZE)
    return;
  coordinator->last_id = id;
  coordinator->is_last = is_last;
  coordinator->number = -1;
  coordinator->steps = 0;
  coordinator->steps_covered = atomic_load(&job->steps);
  for (uint32_t i = 0; i < job->task_count; i++)
    coordinator->seen[i].is_covered = coordinator->seen[i].wants_to_leave;
  coordinator_tell_holders(
    job,
    &(struct job_message){
      .kind = JOB_FREEZE, .id = id, .history = coordinator->history, .newest = coordinator->newest, .wait_ms = coordinator->cut.still_ms});
}

/* The largest step of each driver that some holder has, or has begun to apply. */
static bool goal_of(const struct job_coordinator *coordinator, struct ledger *out) {
  for (uint32_t h = 0; h < coordinator->holder_count; h++)
    for (uint32_t i = 0; i < coordinator->ledgers[h].count; i++) {
      const struct ledger_row *row = &coordinator->ledgers[h].rows[i];
      uint64_t last = row->open > row->last ? row->open : row->last;
      if (ledger_raise(out, row->driver, row->command, serial_of(row->lane, last)) != OK)
        return false;
    }
  return true;
}

/* A driver has finished when it has asked to leave. */
static void mark_finished(const struct job_coordinator *coordinator, struct ledger *goal) {
  for (uint32_t g = 0; g < goal->count; g++)
    goal->rows[g].finished = coordinator->seen[goal->rows[g].driver].is_covered && !coordinator->seen[goal->rows[g].driver].has_left;
}

static void tell_snap(struct job *job) {
  struct job_coordinator *coordinator = job->coordinator;
  struct ledger goal = {0};
  bool has_goal = goal_of(coordinator, &goal);
  mark_finished(coordinator, &goal);
  size_t size = ledger_byte_size(&goal);
  char *bytes = has_goal ? malloc(size + 1) : NULL;
  uint64_t now_ms = monotonic_ms();
  if (bytes) {
    ledger_write(&goal, bytes);
    bool is_uneven = !job->is_replicated && coordinator->failing_since_ms && now_ms - coordinator->failing_since_ms >= UNEVEN_MS;
    if (is_uneven)
      job_say(job, "a step that only some tasks have does not come to the others: the checkpoint is made without it");
    coordinator_tell_holders(job, &(struct job_message){.kind = JOB_SNAP,
                                                        .id = coordinator->cut.id,
                                                        .number = coordinator->number >= 0 ? coordinator->number : coordinator->steps,
                                                        .wait_ms = coordinator->cut.still_ms,
                                                        .is_uneven = is_uneven,
                                                        .ledger = bytes,
                                                        .ledger_size = size});
  } else {
    attempt_apply(job, cut_lost(&coordinator->cut));
  }
  free(bytes);
  ledger_deinit(&goal);
}

/* No holder has taken a step since the last complete checkpoint, and nobody has come to the end of its steps. */
static bool nothing_is_new(const struct job_coordinator *coordinator) {
  for (uint32_t h = 0; h < coordinator->holder_count; h++)
    for (uint32_t i = 0; i < coordinator->ledgers[h].count; i++)
      if (coordinator->seen[coordinator->ledgers[h].rows[i].driver].is_covered && !coordinator->ledgers[h].rows[i].finished)
        return false;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    if (coordinator->seen[coordinator->holder_tasks[i]].steps != coordinator->seen[coordinator->holder_tasks[i]].steps_saved)
      return false;
  return true;
}

/* Who waited for the attempt goes on, however it ended; the next one is made when it is due. */
static void note_tried(struct job *job) {
  struct job_coordinator *coordinator = job->coordinator;
  coordinator->steps_saved = coordinator->steps_covered;
  coordinator->begun_ms = monotonic_ms();
  coordinator_let_leave(job, true);
  pthread_mutex_lock(&job->lock);
  job->wants_last = job->wants_last && !coordinator->is_last;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
}

/* All that was to be saved is. */
static void note_saved(struct job *job) {
  struct job_coordinator *coordinator = job->coordinator;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    coordinator->seen[coordinator->holder_tasks[i]].steps_saved = coordinator->seen[coordinator->holder_tasks[i]].steps;
  coordinator->retry_ms = coordinator->failing_since_ms = 0;
  note_tried(job);
}

void attempt_apply(struct job *job, enum cut_message message) {
  struct job_coordinator *coordinator = job->coordinator;
  uint64_t now_ms = monotonic_ms();
  switch (message) {
  case CUT_SNAP:
    if (!nothing_is_new(coordinator)) {
      tell_snap(job);
      break;
    }
    (void)cut_lost(&coordinator->cut);
    coordinator_tell_holders(job, &(struct job_message){.kind = JOB_ABORT, .id = coordinator->last_id});
    note_saved(job);
    coordinator->retry_ms = now_ms + RETRY_MS; /* also for a holder that has to stay while others work, and asks */
    break;
  case CUT_COMMIT:
    coordinator->newest = coordinator->last_id;
    coordinator_tell_holders(job, &(struct job_message){.kind = JOB_COMMIT, .id = coordinator->last_id});
    note_saved(job);
    break;
  case CUT_ABORT:
    coordinator->retry_ms = now_ms + RETRY_MS;
    coordinator->failing_since_ms = coordinator->failing_since_ms ? coordinator->failing_since_ms : now_ms;
    coordinator_tell_holders(job, &(struct job_message){.kind = JOB_ABORT, .id = coordinator->last_id});
    break;
  default: break;
  }
}

static bool drivers_are_tasks(const struct job *job, const struct ledger *ledger) {
  for (uint32_t i = 0; i < ledger->count; i++)
    if (ledger->rows[i].driver >= job->task_count)
      return false;
  return true;
}

void attempt_take_frozen(struct job *job, uint32_t holder, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  if (message->id != coordinator->cut.id)
    return;
  ledger_deinit(&coordinator->ledgers[holder]);
  if (ledger_read(message->ledger, message->ledger_size, &coordinator->ledgers[holder]) != OK ||
      !drivers_are_tasks(job, &coordinator->ledgers[holder])) {
    attempt_apply(job, cut_refused(&coordinator->cut, holder, message->id));
    return;
  }
  coordinator->number = message->number > coordinator->number ? message->number : coordinator->number;
  coordinator->seen[coordinator->holder_tasks[holder]].steps = message->steps;
  coordinator->steps = message->steps > coordinator->steps ? message->steps : coordinator->steps;
  attempt_apply(job, cut_frozen(&coordinator->cut, holder, message->id));
}

void attempt_take_refused(struct job *job, uint32_t holder, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  bool is_present = message->id == coordinator->cut.id && coordinator->cut.id;
  attempt_apply(job, cut_refused(&coordinator->cut, holder, message->id));
  if (!is_present || !message->is_failure)
    return;
  coordinator->retry_ms = monotonic_ms() + FAILED_RETRY_MS;
  note_tried(job); /* a full disk: who has finished leaves all the same */
}

bool attempt_is_due(const struct job *job, uint64_t now_ms) {
  const struct job_coordinator *coordinator = job->coordinator;
  int64_t steps = atomic_load(&job->steps) - coordinator->steps_saved;
  if (job->options.save_steps && steps >= job->options.save_steps)
    return true;
  return job->options.save_ms && now_ms - coordinator->begun_ms >= (uint64_t)job->options.save_ms;
}
