/* job_history.c: which history the job is in: who has joined, with what state, and what all go back to when some of it was lost
 * (cluster/history.h decides, this asks and tells). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint/job_coordinator.h"
#include "runtime/cluster/cluster.h"
#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"

#define ASK_MS 50

void coordinator_tell_run(struct job *job, uint32_t to) {
  struct job_message message = {.kind = JOB_RUN, .history = job->coordinator->history};
  snprintf(message.text, sizeof message.text, "%s", job->coordinator->said);
  job_send(job, to, &message);
}

static void tell_all_run(struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++)
    if (i == job->self || job->coordinator->seen[i].has_joined)
      coordinator_tell_run(job, i);
}

void coordinator_give_up(struct job *job, const char *text) {
  struct job_message message = {.kind = JOB_GIVE_UP, .has_phases = true};
  snprintf(message.text, sizeof message.text, "%s", text);
  job->coordinator->is_giving_up = true;
  for (uint32_t i = 0; i < job->task_count; i++)
    if (i != job->self)
      job_send(job, i, &message);
  job_fail(job, UNAVAILABLE, text);
}

/* Who has finished and left tells nothing any more: those who are there know the history. */
static void view_others(const struct job *job, struct history_view *view) {
  const struct job_coordinator *coordinator = job->coordinator;
  bool is_missed = false, is_silent = false;
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &coordinator->seen[i];
    view->has_phases = view->has_phases || seen->has_phases;
    is_silent = is_silent || !seen->has_joined;
    is_missed = is_missed || (!seen->has_joined && !cluster_has_left_well(job->cluster, i));
    if (!seen->is_holder && seen->has_joined && seen->history)
      view->others = seen->history;
  }
  view->all_have_told = view->others ? !is_missed : !is_silent;
}

/* A task whose steps nobody does again: it has left, or is about to. task_count: none. */
static uint32_t first_gone(const struct job *job) {
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &job->coordinator->seen[i];
    bool is_here = seen->has_joined && cluster_is_linked(job->cluster, i);
    if (!seen->is_holder && (is_here ? (seen->has_phases && seen->has_left) || seen->is_let_go : seen->had_finished || seen->has_left))
      return i;
  }
  return job->task_count;
}

static const char *name_lost(const struct job *job) {
  const struct job_coordinator *coordinator = job->coordinator;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    if (coordinator->holders[i].history == 0)
      return cluster_task_name(job->cluster, coordinator->holder_tasks[i]);
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
  struct job_coordinator *coordinator = job->coordinator;
  coordinator->said[0] = 0;
  if (decision->verdict == HISTORY_AGAIN)
    snprintf(coordinator->said, sizeof coordinator->said,
             "%s came back without its variables, and %.3000s has no complete checkpoint yet: the job begins again from the "
             "start",
             name_lost(job), job->options.folder);
  else if (decision->verdict == HISTORY_RESTORE && was_lost)
    snprintf(coordinator->said, sizeof coordinator->said,
             "%s came back without its variables: all go back to the newest complete checkpoint in %.3000s", name_lost(job),
             job->options.folder);
}

static void settle(struct job *job, uint64_t history) {
  struct job_coordinator *coordinator = job->coordinator;
  coordinator->history = history;
  coordinator->is_restoring = false;
  coordinator->has_history = true;
  for (uint32_t i = 0; i < job->task_count; i++) /* what they had done may be undone */
    coordinator->seen[i].wants_to_leave = coordinator->seen[i].is_covered = coordinator->seen[i].has_left =
      coordinator->seen[i].had_finished = false;
  for (uint32_t i = 0; i < coordinator->holder_count; i++) {
    coordinator->holders[i].history = history;
    coordinator->seen[coordinator->holder_tasks[i]].history = history;
  }
  coordinator->steps_saved = atomic_load(&job->steps);
  coordinator->begun_ms = monotonic_ms();
  coordinator->retry_ms = coordinator->failing_since_ms = 0; /* what was in the way is of the history before */
  tell_all_run(job);
}

static void begin_history(struct job *job, const struct history_decision *decision, bool was_lost) {
  struct job_coordinator *coordinator = job->coordinator;
  struct job_message message = {
    .kind = JOB_RESTORE, .id = decision->id, .history = FAULT(18) && coordinator->history ? coordinator->history : job_random()};
  struct ledger gone = {0};
  gone_go_back(job, decision->id);
  say_verdict(job, decision, was_lost);
  coordinator->is_restoring = true;
  coordinator->history = message.history;
  coordinator->newest = decision->id;
  coordinator->left_open = 0;
  coordinator->last_id = history_next_id(coordinator->last_id > decision->id ? coordinator->last_id : decision->id, (uint32_t)job_random());
  if (decision->verdict == HISTORY_BEGIN)
    snprintf(message.text, sizeof message.text, "%s", job->options.restore);
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    coordinator->seen[coordinator->holder_tasks[i]].has_restored = false;
  char *bytes = job->seat.keeper && gone_list(job, &gone) == OK ? malloc(ledger_byte_size(&gone)) : NULL;
  if (bytes) { /* else what the checkpoint says has to do */
    ledger_write(&gone, bytes);
    message.ledger = bytes;
    message.ledger_size = ledger_byte_size(&gone);
  }
  coordinator_tell_holders(job, &message);
  free(bytes);
  ledger_deinit(&gone);
  if (coordinator->holder_count == 0) /* a job without variables: nobody has anything to put back */
    settle(job, message.history);
}

/* Whether a folder is given: the chief says so, or who has been in a history, which nobody is before that is known. */
static bool is_settled(const struct job *job) {
  const struct job_coordinator *coordinator = job->coordinator;
  bool is = job->has_options || coordinator->seen[job->chief].has_joined;
  for (uint32_t i = 0; i < job->task_count && !is; i++)
    is = coordinator->seen[i].has_joined && coordinator->seen[i].history;
  return is;
}

/* What this coordinator has given up is on disks, and in what it was told, until its word of that has come. */
static void leave_out_given_up(struct job_coordinator *coordinator) {
  for (uint32_t h = 0; h < coordinator->holder_count && coordinator->history; h++) {
    struct history_holder *holder = &coordinator->holders[h];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < holder->file_count; i++)
      if (holder->files[i] <= coordinator->newest || holder->files[i] == coordinator->left_open)
        holder->files[kept++] = holder->files[i];
    holder->file_count = kept;
  }
}

static void decide(struct job *job) {
  struct job_coordinator *coordinator = job->coordinator;
  struct history_view view = {.holders = coordinator->holders,
                              .holder_count = coordinator->holder_count,
                              .has_folder = *job->options.folder,
                              .is_settled = is_settled(job),
                              .has_chief = coordinator->seen[job->chief].has_joined,
                              .is_replicated = job->is_replicated};
  view_others(job, &view);
  view.has_left = first_gone(job) < job->task_count;
  leave_out_given_up(coordinator);
  struct history_decision decision = history_decide(&view);
  bool was_lost = coordinator->had_lost || view.others != 0;
  char text[4096];
  switch (decision.verdict) {
  case HISTORY_WAIT: return;
  case HISTORY_KEEP:
    coordinator->newest = history_newest_common(coordinator->holders, coordinator->holder_count);
    coordinator->last_id = coordinator->last_id > coordinator->newest ? coordinator->last_id : coordinator->newest;
    settle(job, decision.history);
    return;
  case HISTORY_LOST:
    describe_loss(job, text, sizeof text);
    coordinator_give_up(job, text);
    return;
  default: begin_history(job, &decision, was_lost); return;
  }
}

static void take_files(struct history_holder *holder, const struct job_message *message) {
  holder->has_files = message->has_files;
  holder->file_count = message->file_count;
  memcpy(holder->files, message->files, message->file_count * sizeof *message->files);
}

/* What they have on their disks now, all checkpoints of before included. */
static void ask_holders_again(struct job *job, uint32_t but) {
  struct job_coordinator *coordinator = job->coordinator;
  for (uint32_t i = 0; i < coordinator->holder_count; i++) {
    if (coordinator->holder_tasks[i] == but || !coordinator->holders[i].is_here)
      continue;
    coordinator->holders[i].is_here = false;
    job_send(job, coordinator->holder_tasks[i], &(struct job_message){.kind = JOB_ASK});
  }
}

/* No ABORT: who is back may have written its part and said so to nobody. What all are to go back to they hear soon, and they keep theirs
 * until then. */
static void leave_open(struct job *job) {
  struct job_coordinator *coordinator = job->coordinator;
  if (FAULT(44)) {
    attempt_apply(job, cut_lost(&coordinator->cut));
    return;
  }
  coordinator->left_open = coordinator->cut.id ? coordinator->cut.id : coordinator->left_open;
  (void)cut_lost(&coordinator->cut);
}

/* A holder tells the same again until it hears that the job runs; one in a new life has lost its state. */
static void take_holder(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  struct job_seen *seen = &coordinator->seen[from];
  struct history_holder *holder = &coordinator->holders[seen->holder];
  bool is_same = seen->has_joined && seen->life == message->life;
  take_files(holder, message);
  seen->is_initialised = message->is_initialised;
  if (is_same && coordinator->has_history) {
    coordinator_tell_run(job, from);
    return;
  }
  holder->is_here = true;
  if (!is_same) {
    ask_holders_again(job, from);
    coordinator->had_lost = coordinator->had_lost || (coordinator->has_history && message->history == 0);
    seen->has_joined = true;
    holder->history = seen->history = message->history;
    seen->life = message->life;
    leave_open(job);
    coordinator->has_history = coordinator->is_restoring = false;
  }
  if (!coordinator->is_restoring)
    decide(job);
}

static bool has_finished(const struct job_message *message, uint32_t task) { return message->finished[task / 64] >> task % 64 & 1; }

static void take_other(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  struct job_seen *seen = &coordinator->seen[from];
  if (seen->life != message->life)
    seen->has_left = seen->wants_to_leave = seen->is_covered = seen->had_finished = false;
  seen->is_let_go = has_finished(message, from);
  seen->life = message->life;
  seen->has_joined = true;
  seen->history = message->history;
  if (!coordinator->has_history) {
    if (!coordinator->is_restoring)
      decide(job);
    return;
  }
  bool is_of_another = message->history && message->history != coordinator->history;
  if (is_of_another && !*job->options.folder && !job->is_replicated) {
    char text[512];
    snprintf(text, sizeof text, "%s is of a job whose variables were lost, and there is no --checkpoint-dir to go back to",
             cluster_task_name(job->cluster, from));
    coordinator_give_up(job, text);
    return;
  }
  coordinator_tell_run(job, from);
}

/* --checkpoint-dir was given to another task. */
static void take_options(struct job *job, const struct job_message *message) {
  if (job->has_options || !message->has_options)
    return;
  job_set_options(job, &message->options);
  if (!job->is_holder)
    return;
  struct job_message own = {.kind = JOB_JOIN};
  holder_join(job, &own);
  take_files(&job->coordinator->holders[job->coordinator->seen[job->self].holder], &own);
}

static void share_options(struct job *job, uint32_t to) {
  struct job_message message = {.kind = JOB_OPTIONS, .has_options = true, .options = job->options};
  job_send(job, to, &message);
}

void coordinator_take_join(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  if (coordinator->is_giving_up)
    return;
  bool had_options = job->has_options;
  take_options(job, message);
  struct job_seen *seen = &coordinator->seen[from];
  seen->has_phases = seen->has_phases || message->has_phases;
  seen->is_gone = message->is_gone || (seen->is_gone && seen->life == message->life);
  for (uint32_t i = 0; i < job->task_count; i++)
    coordinator->seen[i].had_finished = coordinator->seen[i].had_finished || (i != from && has_finished(message, i));
  for (uint32_t i = 0; i < job->task_count && job->has_options && !had_options; i++)
    if (i != job->self && i != from && coordinator->seen[i].has_joined)
      share_options(job, i);
  if (job->has_options && !message->has_options && from != job->self)
    share_options(job, from);
  if (seen->is_holder)
    take_holder(job, from, message);
  else
    take_other(job, from, message);
}

void coordinator_take_restored(struct job *job, uint32_t from, const struct job_message *message) {
  struct job_coordinator *coordinator = job->coordinator;
  if (!coordinator->is_restoring || message->history != coordinator->history || !coordinator->seen[from].is_holder)
    return;
  coordinator->seen[from].has_restored = true;
  coordinator->seen[from].steps_saved = message->steps;
  coordinator->seen[from].is_initialised = message->is_initialised;
  for (uint32_t i = 0; i < coordinator->holder_count; i++)
    if (!coordinator->seen[coordinator->holder_tasks[i]].has_restored)
      return;
  settle(job, coordinator->history);
  coordinator->had_lost = false;
}

/* A new coordinator: the others have long joined the one before. And whose answer did not come. Who is not waited for any more may have
 * been the last one. */
void coordinator_ask_all(struct job *job, uint64_t now_ms) {
  struct job_coordinator *coordinator = job->coordinator;
  if (coordinator->has_history || coordinator->is_giving_up || now_ms - coordinator->asked_ms < ASK_MS)
    return;
  coordinator->asked_ms = now_ms;
  if (job->is_replicated && !coordinator->is_restoring)
    decide(job);
  for (uint32_t i = 0; i < job->task_count && !coordinator->has_history; i++)
    if (!coordinator->seen[i].has_joined || (coordinator->seen[i].is_holder && !coordinator->holders[coordinator->seen[i].holder].is_here))
      job_send(job, i, &(struct job_message){.kind = JOB_ASK});
}

/* Without whom there is no history; task_count: nobody. */
static uint32_t first_missing(const struct job *job) {
  const struct job_coordinator *coordinator = job->coordinator;
  bool was_up;
  for (uint32_t i = 0; i < job->task_count; i++) {
    const struct job_seen *seen = &coordinator->seen[i];
    bool is_needed = seen->is_holder || job->is_replicated || (i == job->chief && !is_settled(job));
    if (is_needed && cluster_missing_ms(job->cluster, i, &was_up) >= job->timeout_ms)
      return i;
  }
  return job->task_count;
}

/* Who waits for a history waits for those that it needs, and no longer than for any other task. */
void coordinator_give_up_late(struct job *job, uint64_t now_ms) {
  struct job_coordinator *coordinator = job->coordinator;
  bool is_awaited = false;
  for (uint32_t i = 0; i < job->task_count; i++)
    is_awaited = is_awaited || (coordinator->seen[i].has_joined && coordinator->seen[i].has_phases &&
                                (i == job->self || cluster_is_linked(job->cluster, i)));
  if (coordinator->has_history || coordinator->is_giving_up || !is_awaited) {
    coordinator->awaited_ms = 0;
    return;
  }
  coordinator->awaited_ms = coordinator->awaited_ms ? coordinator->awaited_ms : now_ms;
  uint32_t missing = now_ms - coordinator->awaited_ms >= job->timeout_ms ? first_missing(job) : job->task_count;
  if (missing == job->task_count)
    return;
  char described[512], text[700];
  cluster_describe(job->cluster, missing, described, sizeof described);
  snprintf(text, sizeof text, "%s cannot be reached within %.3g s, and the job does not go on without it", described,
           (double)job->timeout_ms / 1000);
  coordinator_give_up(job, text);
}
