/* job_coordinator.c: the task that decides for the job: which history it is in, when a checkpoint is cut, who may leave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint/job_state.h"
#include "runtime/cluster/cluster.h"
#include "runtime/program/fault.h"
#include "runtime/step/task_state.h"

#define ASK_MS 50
#define CHIEF_MS 1000        /* so long the chief may be away before others are told in its place */
#define RETRY_MS 50          /* after an attempt that was given up */
#define FAILED_RETRY_MS 1000 /* after one that could not be written */
#define UNEVEN_MS 5000       /* a step that some holders lack does not come: the others go on without it */

static void tell_holders(struct job *job, const struct job_message *message) {
  struct job_chair *chair = job->chair;
  for (uint32_t i = 0; i < chair->holder_count; i++)
    if (chair->holder_tasks[i] != job->self)
      job_send(job, chair->holder_tasks[i], message);
  if (job->is_holder) /* the others have heard while this one works */
    job_send(job, job->self, message);
}

/* ---- histories ---- */

static void tell_run(struct job *job, uint32_t to) {
  struct job_message message = {.kind = JOB_RUN, .history = job->chair->history};
  snprintf(message.text, sizeof message.text, "%s", job->chair->said);
  job_send(job, to, &message);
}

static void tell_all_run(struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++)
    if (i == job->self || job->chair->seen[i].has_joined)
      tell_run(job, i);
}

static void give_up_job(struct job *job, const char *text) {
  struct job_message message = {.kind = JOB_GIVE_UP, .has_phases = true};
  snprintf(message.text, sizeof message.text, "%s", text);
  job->chair->is_giving_up = true;
  for (uint32_t i = 0; i < job->task_count; i++)
    if (i != job->self)
      job_send(job, i, &message);
  job_fail(job, UNAVAILABLE, text);
}

static void view_others(const struct job *job, struct history_view *view) {
  const struct job_chair *chair = job->chair;
  view->all_have_told = true;
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &chair->seen[i];
    view->has_phases = view->has_phases || seen->has_phases;
    view->all_have_told = view->all_have_told && seen->has_joined;
    if (!seen->is_holder && seen->has_joined && seen->history)
      view->others = seen->history;
  }
}

/* A task whose steps nobody does again: it has left, or is about to. task_count: none. */
static uint32_t first_gone(const struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &job->chair->seen[i];
    bool is_here = seen->has_joined && cluster_is_linked(job->cluster, i);
    if (!seen->is_holder && (is_here ? (seen->has_phases && seen->has_left) || seen->is_let_go : seen->had_finished || seen->has_left))
      return i;
  }
  return job->task_count;
}

static const char *name_lost(const struct job *job) {
  const struct job_chair *chair = job->chair;
  for (uint32_t i = 0; i < chair->holder_count; i++)
    if (chair->holders[i].history == 0)
      return cluster_task_name(job->cluster, chair->holder_tasks[i]);
  return "a task";
}

/* Why the job cannot go on. */
static void describe_loss(const struct job *job, char *out, size_t size) {
  if (*job->options.folder)
    snprintf(out, size,
             "%s came back without its variables, %.3000s has no checkpoint that all have, and %s has done its steps and does not do them "
             "again",
             name_lost(job), job->options.folder, cluster_task_name(job->cluster, first_gone(job)));
  else
    snprintf(out, size, "%s came back without its variables, and there is no --checkpoint-dir to go back to", name_lost(job));
}

/* The words for the others, where something was lost. */
static void say_verdict(struct job *job, const struct history_decision *decision, bool was_lost) {
  struct job_chair *chair = job->chair;
  chair->said[0] = 0;
  if (decision->verdict == HISTORY_AGAIN)
    snprintf(chair->said, sizeof chair->said,
             "%s came back without its variables, and %.3000s has no complete checkpoint yet: the job begins again from the "
             "start",
             name_lost(job), job->options.folder);
  else if (decision->verdict == HISTORY_RESTORE && was_lost)
    snprintf(chair->said, sizeof chair->said,
             "%s came back without its variables: all go back to the newest complete checkpoint in %.3000s", name_lost(job),
             job->options.folder);
}

static void settle(struct job *job, uint64_t history) {
  struct job_chair *chair = job->chair;
  chair->history = history;
  chair->is_restoring = false;
  chair->has_history = true;
  for (uint32_t i = 0; i < job->task_count; i++) /* what they had done may be undone */
    chair->seen[i].wants_to_leave = chair->seen[i].is_covered = chair->seen[i].has_left = chair->seen[i].had_finished = false;
  for (uint32_t i = 0; i < chair->holder_count; i++) {
    chair->holders[i].history = history;
    chair->seen[chair->holder_tasks[i]].history = history;
  }
  chair->steps_saved = atomic_load(&job->steps);
  chair->begun_ms = job_now_ms();
  chair->retry_ms = chair->failing_since_ms = 0; /* what was in the way is of the history before */
  tell_all_run(job);
}

static void begin_history(struct job *job, const struct history_decision *decision, bool was_lost) {
  struct job_chair *chair = job->chair;
  struct job_message message = {
    .kind = JOB_RESTORE, .id = decision->id, .history = FAULT(18) && chair->history ? chair->history : job_random()};
  say_verdict(job, decision, was_lost);
  chair->is_restoring = true;
  chair->history = message.history;
  chair->newest = decision->id;
  chair->last_id = history_next_id(chair->last_id > decision->id ? chair->last_id : decision->id, (uint32_t)job_random());
  if (decision->verdict == HISTORY_BEGIN)
    snprintf(message.text, sizeof message.text, "%s", job->options.restore);
  for (uint32_t i = 0; i < chair->holder_count; i++)
    chair->seen[chair->holder_tasks[i]].has_restored = false;
  tell_holders(job, &message);
  if (chair->holder_count == 0) /* a job without variables: nobody has anything to put back */
    settle(job, message.history);
}

/* Whether a folder is given: the chief says so, or who has been in a history, which nobody is before that is known. */
static bool is_settled(const struct job *job) {
  const struct job_chair *chair = job->chair;
  bool is = job->has_options || chair->seen[job->chief].has_joined;
  for (uint32_t i = 0; i < job->task_count && !is; i++)
    is = chair->seen[i].has_joined && chair->seen[i].history;
  return is;
}

static void decide(struct job *job) {
  struct job_chair *chair = job->chair;
  struct history_view view = {.holders = chair->holders,
                              .holder_count = chair->holder_count,
                              .has_folder = *job->options.folder,
                              .is_settled = is_settled(job),
                              .has_chief = chair->seen[job->chief].has_joined,
                              .is_replicated = job->is_replicated};
  view_others(job, &view);
  view.has_left = first_gone(job) < job->task_count;
  struct history_decision decision = history_decide(&view);
  bool was_lost = chair->had_lost || view.others != 0;
  char text[4096];
  switch (decision.verdict) {
  case HISTORY_WAIT: return;
  case HISTORY_KEEP:
    chair->newest = history_newest_common(chair->holders, chair->holder_count);
    chair->last_id = chair->last_id > chair->newest ? chair->last_id : chair->newest;
    settle(job, decision.history);
    return;
  case HISTORY_LOST:
    describe_loss(job, text, sizeof text);
    give_up_job(job, text);
    return;
  default: begin_history(job, &decision, was_lost); return;
  }
}

static void end_attempt(struct job *job, enum cut_message message);

static void take_files(struct history_holder *holder, const struct job_message *message) {
  holder->has_files = message->has_files;
  holder->file_count = message->file_count;
  memcpy(holder->files, message->files, message->file_count * sizeof *message->files);
}

/* What they have on their disks now, all checkpoints of before included. */
static void ask_holders_again(struct job *job, uint32_t but) {
  struct job_chair *chair = job->chair;
  for (uint32_t i = 0; i < chair->holder_count; i++) {
    if (chair->holder_tasks[i] == but || !chair->holders[i].is_here)
      continue;
    chair->holders[i].is_here = false;
    job_send(job, chair->holder_tasks[i], &(struct job_message){.kind = JOB_ASK});
  }
}

/* A holder tells the same again until it hears that the job runs; one in a new life has lost its state. */
static void take_holder(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_chair *chair = job->chair;
  struct job_seen *seen = &chair->seen[from];
  struct history_holder *holder = &chair->holders[seen->holder];
  bool is_same = seen->has_joined && seen->life == message->life;
  take_files(holder, message);
  seen->is_initialised = message->is_initialised;
  if (is_same && chair->has_history) {
    tell_run(job, from);
    return;
  }
  holder->is_here = true;
  if (!is_same) {
    ask_holders_again(job, from);
    chair->had_lost = chair->had_lost || (chair->has_history && message->history == 0);
    seen->has_joined = true;
    holder->history = seen->history = message->history;
    seen->life = message->life;
    end_attempt(job, cut_lost(&chair->cut));
    chair->has_history = chair->is_restoring = false;
  }
  if (!chair->is_restoring)
    decide(job);
}

static bool has_finished(const struct job_message *message, uint32_t task) { return message->finished[task / 64] >> task % 64 & 1; }

static void take_other(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_chair *chair = job->chair;
  struct job_seen *seen = &chair->seen[from];
  if (seen->life != message->life)
    seen->has_left = seen->wants_to_leave = seen->is_covered = seen->had_finished = false;
  seen->is_let_go = has_finished(message, from);
  seen->life = message->life;
  seen->has_joined = true;
  seen->history = message->history;
  if (!chair->has_history) {
    if (!chair->is_restoring)
      decide(job);
    return;
  }
  bool is_of_another = message->history && message->history != chair->history;
  if (is_of_another && !*job->options.folder && !job->is_replicated) {
    char text[512];
    snprintf(text, sizeof text, "%s is of a job whose variables were lost, and there is no --checkpoint-dir to go back to",
             cluster_task_name(job->cluster, from));
    give_up_job(job, text);
    return;
  }
  tell_run(job, from);
}

/* --checkpoint-dir was given to another task. */
static void take_options(struct job *job, uint32_t from, const struct job_message *message) {
  if (job->has_options || !message->has_options)
    return;
  job_set_options(job, &message->options);
  (void)from;
  if (!job->is_holder)
    return;
  struct job_message own = {.kind = JOB_JOIN};
  holder_join(job, &own);
  take_files(&job->chair->holders[job->chair->seen[job->self].holder], &own);
}

static void share_options(struct job *job, uint32_t to) {
  struct job_message message = {.kind = JOB_OPTIONS, .has_options = true, .options = job->options};
  job_send(job, to, &message);
}

static void take_join(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_chair *chair = job->chair;
  if (chair->is_giving_up)
    return;
  bool had_options = job->has_options;
  take_options(job, from, message);
  chair->seen[from].has_phases = chair->seen[from].has_phases || message->has_phases;
  for (uint32_t i = 0; i < job->task_count; i++)
    chair->seen[i].had_finished = chair->seen[i].had_finished || (i != from && has_finished(message, i));
  for (uint32_t i = 0; i < job->task_count && job->has_options && !had_options; i++)
    if (i != job->self && i != from && chair->seen[i].has_joined)
      share_options(job, i);
  if (job->has_options && !message->has_options && from != job->self)
    share_options(job, from);
  if (chair->seen[from].is_holder)
    take_holder(job, from, message);
  else
    take_other(job, from, message);
}

static void take_restored(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_chair *chair = job->chair;
  if (!chair->is_restoring || message->history != chair->history || !chair->seen[from].is_holder)
    return;
  chair->seen[from].has_restored = true;
  chair->seen[from].steps_saved = message->steps;
  chair->seen[from].is_initialised = message->is_initialised;
  for (uint32_t i = 0; i < chair->holder_count; i++)
    if (!chair->seen[chair->holder_tasks[i]].has_restored)
      return;
  settle(job, chair->history);
  chair->had_lost = false;
}

/* ---- checkpoints ---- */

/* Somebody with phases is there who may still take steps. */
static bool somebody_works(const struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &job->chair->seen[i];
    if (seen->has_joined && seen->has_phases && !seen->has_left && !seen->wants_to_leave && cluster_is_linked(job->cluster, i))
      return true;
  }
  return false;
}

static void let_leave(struct job *job, bool only_covered) {
  struct job_chair *chair = job->chair;
  for (uint32_t i = 0; i < job->task_count; i++) {
    struct job_seen *seen = &chair->seen[i];
    if (seen->wants_to_leave && !seen->has_phases && somebody_works(job))
      continue;
    if (!seen->wants_to_leave || (only_covered && !seen->is_covered && !FAULT(14)))
      continue;
    job_send(job, i, &(struct job_message){.kind = JOB_LEAVE, .history = chair->history});
    seen->wants_to_leave = seen->is_covered = false;
    seen->has_left = true;
  }
}

static void begin_attempt(struct job *job, uint64_t now_ms, bool is_last) {
  struct job_chair *chair = job->chair;
  uint64_t id = FAULT(11) && chair->last_id != chair->newest ? chair->last_id : history_next_id(chair->last_id, (uint32_t)job_random());
  if (cut_begin(&chair->cut, id, now_ms) != CUT_FREEZE)
    return;
  chair->last_id = id;
  chair->is_last = is_last;
  chair->number = -1;
  chair->steps = 0;
  chair->steps_covered = atomic_load(&job->steps);
  for (uint32_t i = 0; i < job->task_count; i++)
    chair->seen[i].is_covered = chair->seen[i].wants_to_leave;
  tell_holders(job, &(struct job_message){
                      .kind = JOB_FREEZE, .id = id, .history = chair->history, .newest = chair->newest, .wait_ms = chair->cut.still_ms});
}

/* The largest step of each driver that some holder has, or has begun to apply. */
static bool goal_of(const struct job_chair *chair, struct ledger *out) {
  for (uint32_t h = 0; h < chair->holder_count; h++)
    for (uint32_t i = 0; i < chair->ledgers[h].count; i++) {
      const struct ledger_row *row = &chair->ledgers[h].rows[i], *known = ledger_find(out, row->driver, row->lane);
      uint64_t last = row->open > row->last ? row->open : row->last;
      bool is_more = !known || row->command > known->command || (row->command == known->command && last > known->last);
      if (is_more && ledger_rewind(out, row->driver, row->command, serial_of(row->lane, last)) != OK)
        return false;
    }
  return true;
}

/* A driver has finished when it has asked to leave. */
static void mark_finished(const struct job_chair *chair, struct ledger *goal) {
  for (uint32_t g = 0; g < goal->count; g++)
    goal->rows[g].finished = chair->seen[goal->rows[g].driver].is_covered && !chair->seen[goal->rows[g].driver].has_left;
}

static void tell_snap(struct job *job) {
  struct job_chair *chair = job->chair;
  struct ledger goal = {0};
  bool has_goal = goal_of(chair, &goal);
  mark_finished(chair, &goal);
  size_t size = ledger_byte_size(&goal);
  char *bytes = has_goal ? malloc(size + 1) : NULL;
  uint64_t now_ms = job_now_ms();
  if (bytes) {
    ledger_write(&goal, bytes);
    bool is_uneven = chair->failing_since_ms && now_ms - chair->failing_since_ms >= UNEVEN_MS;
    if (is_uneven)
      job_say(job, "a step that only some tasks have does not come to the others: the checkpoint is made without it");
    tell_holders(job, &(struct job_message){.kind = JOB_SNAP,
                                            .id = chair->cut.id,
                                            .number = chair->number >= 0 ? chair->number : chair->steps,
                                            .wait_ms = chair->cut.still_ms,
                                            .is_uneven = is_uneven,
                                            .ledger = bytes,
                                            .ledger_size = size});
  } else {
    end_attempt(job, cut_lost(&chair->cut));
  }
  free(bytes);
  ledger_deinit(&goal);
}

/* No holder has taken a step since the last complete checkpoint, and nobody has come to the end of its steps. */
static bool nothing_is_new(const struct job_chair *chair) {
  for (uint32_t h = 0; h < chair->holder_count; h++)
    for (uint32_t i = 0; i < chair->ledgers[h].count; i++)
      if (chair->seen[chair->ledgers[h].rows[i].driver].is_covered && !chair->ledgers[h].rows[i].finished)
        return false;
  for (uint32_t i = 0; i < chair->holder_count; i++)
    if (chair->seen[chair->holder_tasks[i]].steps != chair->seen[chair->holder_tasks[i]].steps_saved)
      return false;
  return true;
}

/* Who waited for the attempt goes on, however it ended; the next one is made when it is due. */
static void note_tried(struct job *job) {
  struct job_chair *chair = job->chair;
  chair->steps_saved = chair->steps_covered;
  chair->begun_ms = job_now_ms();
  let_leave(job, true);
  pthread_mutex_lock(&job->lock);
  job->wants_last = job->wants_last && !chair->is_last;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
}

/* All that was to be saved is. */
static void note_saved(struct job *job) {
  struct job_chair *chair = job->chair;
  for (uint32_t i = 0; i < chair->holder_count; i++)
    chair->seen[chair->holder_tasks[i]].steps_saved = chair->seen[chair->holder_tasks[i]].steps;
  chair->retry_ms = chair->failing_since_ms = 0;
  note_tried(job);
}

/* What the attempt has come to. */
static void end_attempt(struct job *job, enum cut_message message) {
  struct job_chair *chair = job->chair;
  uint64_t now_ms = job_now_ms();
  switch (message) {
  case CUT_SNAP:
    if (!nothing_is_new(chair)) {
      tell_snap(job);
      break;
    }
    (void)cut_lost(&chair->cut);
    tell_holders(job, &(struct job_message){.kind = JOB_ABORT, .id = chair->last_id});
    note_saved(job);
    chair->retry_ms = now_ms + RETRY_MS; /* also for a holder that has to stay while others work, and asks */
    break;
  case CUT_COMMIT:
    chair->newest = chair->last_id;
    tell_holders(job, &(struct job_message){.kind = JOB_COMMIT, .id = chair->last_id});
    note_saved(job);
    break;
  case CUT_ABORT:
    chair->retry_ms = now_ms + RETRY_MS;
    chair->failing_since_ms = chair->failing_since_ms ? chair->failing_since_ms : now_ms;
    tell_holders(job, &(struct job_message){.kind = JOB_ABORT, .id = chair->last_id});
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

static void take_frozen(struct job *job, uint32_t holder, const struct job_message *message) {
  struct job_chair *chair = job->chair;
  if (message->id != chair->cut.id)
    return;
  ledger_deinit(&chair->ledgers[holder]);
  if (ledger_read(message->ledger, message->ledger_size, &chair->ledgers[holder]) != OK ||
      !drivers_are_tasks(job, &chair->ledgers[holder])) {
    end_attempt(job, cut_refused(&chair->cut, holder, message->id));
    return;
  }
  chair->number = message->number > chair->number ? message->number : chair->number;
  chair->seen[chair->holder_tasks[holder]].steps = message->steps;
  chair->steps = message->steps > chair->steps ? message->steps : chair->steps;
  end_attempt(job, cut_frozen(&chair->cut, holder, message->id));
}

/* A full disk: who has finished leaves all the same. */
static void take_refused(struct job *job, uint32_t holder, const struct job_message *message) {
  struct job_chair *chair = job->chair;
  bool is_present = message->id == chair->cut.id && chair->cut.id;
  end_attempt(job, cut_refused(&chair->cut, holder, message->id));
  if (!is_present || !message->is_failure)
    return;
  chair->retry_ms = job_now_ms() + FAILED_RETRY_MS;
  note_tried(job);
}

static bool is_due(const struct job *job, uint64_t now_ms) {
  const struct job_chair *chair = job->chair;
  int64_t steps = atomic_load(&job->steps) - chair->steps_saved;
  if (job->options.save_steps && steps >= job->options.save_steps)
    return true;
  return job->options.save_ms && now_ms - chair->begun_ms >= (uint64_t)job->options.save_ms;
}

static bool somebody_wants_to_leave(const struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++)
    if (job->chair->seen[i].wants_to_leave)
      return true;
  return false;
}

/* No more checkpoints: some holder has left, or does not come back. */
static bool holders_have_gone(const struct job *job) {
  const struct job_chair *chair = job->chair;
  bool was_up;
  for (uint32_t i = 0; i < chair->holder_count; i++)
    if (chair->holder_tasks[i] != job->self && (chair->seen[chair->holder_tasks[i]].has_left ||
                                                cluster_missing_ms(job->cluster, chair->holder_tasks[i], &was_up) >= job->timeout_ms))
      return true;
  return false;
}

/* A last one, when this task is about to end. */
static bool wants_last(struct job *job) {
  bool is_broken = holders_have_gone(job);
  pthread_mutex_lock(&job->lock);
  if (!*job->options.folder || !job->chair->has_history || is_broken)
    job->wants_last = false;
  bool wants = job->wants_last;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
  return wants;
}

bool chair_is_empty(struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &job->chair->seen[i];
    bool may_ask = !seen->has_joined || (!seen->has_left && (seen->is_holder || seen->has_phases));
    if (i != job->self && may_ask && cluster_is_linked(job->cluster, i))
      return false;
  }
  return true;
}

/* A new coordinator: the others have long joined the one before. And whose answer did not come. */
static void ask_all(struct job *job, uint64_t now_ms) {
  struct job_chair *chair = job->chair;
  if (chair->has_history || chair->is_giving_up || now_ms - chair->asked_ms < ASK_MS)
    return;
  chair->asked_ms = now_ms;
  for (uint32_t i = 0; i < job->task_count; i++)
    if (!chair->seen[i].has_joined || (chair->seen[i].is_holder && !chair->holders[chair->seen[i].holder].is_here))
      job_send(job, i, &(struct job_message){.kind = JOB_ASK});
}

/* Without whom there is no history; task_count: nobody. */
static uint32_t first_missing(const struct job *job) {
  const struct job_chair *chair = job->chair;
  bool was_up;
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &chair->seen[i];
    bool is_needed = seen->is_holder || job->is_replicated || (i == job->chief && !is_settled(job));
    if (is_needed && cluster_missing_ms(job->cluster, i, &was_up) >= job->timeout_ms)
      return i;
  }
  return job->task_count;
}

/* Who waits for a history waits for those that it needs, and no longer than for any other task. */
static void give_up_late(struct job *job, uint64_t now_ms) {
  struct job_chair *chair = job->chair;
  bool is_awaited = false;
  for (uint32_t i = 0; i < job->task_count; i++)
    is_awaited =
      is_awaited || (chair->seen[i].has_joined && chair->seen[i].has_phases && (i == job->self || cluster_is_linked(job->cluster, i)));
  if (chair->has_history || chair->is_giving_up || !is_awaited) {
    chair->awaited_ms = 0;
    return;
  }
  chair->awaited_ms = chair->awaited_ms ? chair->awaited_ms : now_ms;
  uint32_t missing = now_ms - chair->awaited_ms >= job->timeout_ms ? first_missing(job) : job->task_count;
  if (missing == job->task_count)
    return;
  char described[512], text[700];
  cluster_describe(job->cluster, missing, described, sizeof described);
  snprintf(text, sizeof text, "%s cannot be reached within %.3g s, and the job does not go on without it", described,
           (double)job->timeout_ms / 1000);
  give_up_job(job, text);
}

/* This task has seen the end of all work: a holder that was started again meanwhile cannot. */
static void end_holders(struct job *job) {
  struct job_chair *chair = job->chair;
  pthread_mutex_lock(&job->lock);
  bool is_over = job->is_over && !job->wants_last;
  pthread_mutex_unlock(&job->lock);
  if (!is_over || !chair->has_history || chair->cut.id || somebody_works(job))
    return;
  for (uint32_t i = 0; i < chair->holder_count; i++) {
    uint32_t task = chair->holder_tasks[i];
    if (task == job->self || chair->seen[task].has_left)
      continue;
    chair->seen[task].has_left = job_send(job, task, &(struct job_message){.kind = JOB_LEAVE, .history = chair->history});
  }
}

/* The chief has left, and those who come later have not heard from it that all is initialised: the holders know. */
static void stand_in_for_chief(struct job *job, uint64_t now_ms) {
  struct job_chair *chair = job->chair;
  bool was_up, is_ready = true;
  if (!chair->has_history || chair->has_said_ready || now_ms - chair->asked_ms < CHIEF_MS ||
      cluster_missing_ms(job->cluster, job->chief, &was_up) < CHIEF_MS)
    return;
  for (uint32_t i = 0; i < chair->holder_count; i++)
    is_ready = is_ready && chair->seen[chair->holder_tasks[i]].is_initialised;
  chair->asked_ms = now_ms;
  chair->has_said_ready = is_ready;
  if (is_ready)
    cluster_announce_ready(job->cluster, true);
  else
    tell_holders(job, &(struct job_message){.kind = JOB_ASK});
}

void chair_tick(struct job *job, uint64_t now_ms) {
  struct job_chair *chair = job->chair;
  ask_all(job, now_ms);
  give_up_late(job, now_ms);
  stand_in_for_chief(job, now_ms);
  end_holders(job);
  end_attempt(job, cut_tick(&chair->cut, now_ms));
  bool wants_one = wants_last(job);
  if (!chair->has_history || chair->cut.id || now_ms < chair->retry_ms)
    return;
  if (!*job->options.folder) {
    let_leave(job, false);
    return;
  }
  atomic_store(&job->due_steps, job->options.save_steps ? chair->steps_saved + job->options.save_steps : 0);
  if (wants_one || somebody_wants_to_leave(job) || is_due(job, now_ms))
    begin_attempt(job, now_ms, wants_one);
}

uint64_t chair_due_ms(const struct job *job, uint64_t now_ms) {
  const struct job_chair *chair = job->chair;
  uint64_t due_ms = cut_due_ms(&chair->cut);
  if (due_ms)
    return due_ms;
  if (chair->retry_ms > now_ms)
    return chair->retry_ms;
  return job->options.save_ms && chair->has_history ? chair->begun_ms + (uint64_t)job->options.save_ms : UINT64_MAX;
}

static void take_leave_ask(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_seen *seen = &job->chair->seen[from];
  if (!job->chair->has_history)
    return;
  if (message->history != job->chair->history) { /* its steps may have been undone, and it has not heard of it */
    tell_run(job, from);
    return;
  }
  seen->wants_to_leave = !seen->has_left;
  if (seen->has_left) /* it asked again before it heard */
    job_send(job, from, &(struct job_message){.kind = JOB_LEAVE, .history = job->chair->history});
}

void chair_message(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_chair *chair = job->chair;
  if (from >= job->task_count)
    return;
  uint32_t holder = chair->seen[from].holder;
  bool is_holder = chair->seen[from].is_holder;
  switch (message->kind) {
  case JOB_JOIN: take_join(job, from, message); break;
  case JOB_RESTORED: take_restored(job, from, message); break;
  case JOB_GIVE_UP:
    if (is_holder && chair->is_restoring && message->history == chair->history)
      give_up_job(job, message->text);
    break;
  case JOB_LEAVE_ASK: take_leave_ask(job, from, message); break;
  case JOB_FROZEN:
    if (is_holder)
      take_frozen(job, holder, message);
    break;
  case JOB_TAKEN:
    if (is_holder)
      end_attempt(job, cut_taken(&chair->cut, holder, message->id));
    break;
  case JOB_DONE:
    if (is_holder)
      end_attempt(job, cut_done(&chair->cut, holder, message->id));
    break;
  case JOB_REFUSED:
    if (is_holder)
      take_refused(job, holder, message);
    break;
  default: break;
  }
}

/* ---- life ---- */

status chair_create(struct job *job) {
  struct job_chair *chair = calloc(1, sizeof *chair);
  job->chair = chair;
  if (!chair)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  chair->seen = calloc(job->task_count, sizeof *chair->seen);
  chair->holders = calloc((size_t)job->holder_total + 1, sizeof *chair->holders);
  chair->holder_tasks = calloc((size_t)job->holder_total + 1, sizeof *chair->holder_tasks);
  chair->ledgers = calloc((size_t)job->holder_total + 1, sizeof *chair->ledgers);
  if (!chair->seen || !chair->holders || !chair->holder_tasks || !chair->ledgers)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  if (job->holder_total > CUT_HOLDERS_MAX)
    return fail(UNIMPLEMENTED, "checkpoints of more than %d tasks with variables", CUT_HOLDERS_MAX);
  for (uint32_t i = 0; i < job->task_count; i++) {
    if (!(program_task(job->task->program, i)->flags & PROGRAM_TASK_HOLDS))
      continue;
    chair->seen[i].is_holder = true;
    chair->seen[i].holder = chair->holder_count;
    chair->holder_tasks[chair->holder_count++] = i;
  }
  chair->cut.holder_count = chair->holder_count;
  return OK;
}

void chair_destroy(struct job *job) {
  struct job_chair *chair = job->chair;
  if (!chair)
    return;
  for (uint32_t i = 0; chair->ledgers && i < chair->holder_count; i++)
    ledger_deinit(&chair->ledgers[i]);
  free(chair->ledgers);
  free(chair->seen);
  free(chair->holders);
  free(chair->holder_tasks);
  free(chair);
  job->chair = NULL;
}
