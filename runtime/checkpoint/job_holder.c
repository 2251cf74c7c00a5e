/* job_holder.c: a holder does what the coordinator says: freezes, copies, writes, goes back. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/synced_file.h"
#include "runtime/checkpoint/job_state.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/cluster/cluster.h"
#include "runtime/memory/variable.h"
#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"
#include "runtime/resource/meeting.h"
#include "runtime/step/task_state.h"

#define RESTORE_FREEZE_MS 60000

/* ---- files ---- */

static int file_order(const void *a, const void *b) {
  uint64_t x = ((const struct job_file *)a)->id, y = ((const struct job_file *)b)->id;
  return x < y ? -1 : x > y;
}

static void add_file(struct job_seat *seat, uint64_t id, const char *name) {
  struct job_file file = {.id = id};
  snprintf(file.name, sizeof file.name, "%s", name);
  vec_push(&seat->files, file);
}

static void forget_file(struct job_seat *seat, uint64_t id) {
  for (uint32_t i = 0; i < seat->files.count; i++)
    if (seat->files.items[i].id == id) {
      seat->files.count--;
      memmove(&seat->files.items[i], &seat->files.items[i + 1], (seat->files.count - i) * sizeof *seat->files.items);
      return;
    }
}

static const struct job_file *find_file(const struct job_seat *seat, uint64_t id) {
  for (uint32_t i = 0; i < seat->files.count; i++)
    if (seat->files.items[i].id == id)
      return &seat->files.items[i];
  return NULL;
}

/* Whatever is complete in the folder, named in the state file or not: a file that a commit came too late for counts. They were synced
 * before they got their names; who was killed just then has left names that a loss of power would take away. */
static status list_files(struct job *job) {
  struct job_seat *seat = &job->seat;
  char inside[CHECKPOINT_PATH_MAX + 16];
  snprintf(inside, sizeof inside, "%s/checkpoint", keeper_folder(seat->keeper));
  if (!FAULT(13))
    TRY(synced_folder_of(inside));
  DIR *dir = opendir(keeper_folder(seat->keeper));
  char prefix[CHECKPOINT_PATH_MAX + CHECKPOINT_NAME_MAX];
  struct note_head head;
  seat->files.count = 0;
  for (const struct dirent *entry; dir && (entry = readdir(dir));) {
    const char *end = strstr(entry->d_name, ".index");
    if (!end || end[strlen(".index")] || strlen(entry->d_name) >= CHECKPOINT_NAME_MAX)
      continue;
    snprintf(prefix, sizeof prefix, "%s/%.*s", keeper_folder(seat->keeper), (int)(end - entry->d_name), entry->d_name);
    if (restore_peek(prefix, &head, NULL) == OK && head.id && head.holders == job->holder_total)
      add_file(seat, head.id, strrchr(prefix, '/') + 1);
  }
  if (dir)
    closedir(dir);
  if (seat->files.count)
    qsort(seat->files.items, seat->files.count, sizeof *seat->files.items, file_order);
  return OK;
}

/* Whose steps all were done when the checkpoint was made: they may have left for good. */
static void note_finished(struct job *job, const struct ledger *steps) {
  for (uint32_t task = 0; task < job->task_count; task++) {
    bool has_row = false, has_finished = true;
    for (uint32_t i = 0; i < steps->count; i++)
      if (steps->rows[i].driver == task) {
        has_row = true;
        has_finished = has_finished && steps->rows[i].finished;
      }
    cluster_note_finished(job->cluster, task, has_row && has_finished);
  }
}

/* The others may have left, so that nothing is restored: what the newest that was complete says of them holds. */
static void note_latest(struct job *job) {
  char prefix[CHECKPOINT_PATH_MAX + CHECKPOINT_NAME_MAX];
  struct note_head head;
  struct ledger steps = {0};
  if (keeper_latest(job->seat.keeper, prefix, sizeof prefix) && restore_peek(prefix, &head, &steps) == OK && head.id)
    note_finished(job, &steps);
  ledger_deinit(&steps);
}

void holder_note_failure(struct job *job, const char *text) {
  pthread_mutex_lock(&job->lock);
  job->has_failed = true;
  snprintf(job->failed_text, sizeof job->failed_text, "%s", text);
  pthread_mutex_unlock(&job->lock);
  job_say(job, "a checkpoint could not be saved to %s, the work goes on: %s", keeper_folder(job->seat.keeper), text);
}

static bool is_news(struct job *job, const char *text) {
  pthread_mutex_lock(&job->lock);
  bool is = !job->has_failed || strcmp(job->failed_text, text) != 0;
  pthread_mutex_unlock(&job->lock);
  return is;
}

/* On the keeper's thread. */
static void on_done(void *self, const char *name, const struct note_head *head, status code, const char *text) {
  struct job *job = self;
  (void)name;
  if (code == OK) {
    atomic_store(&job->seat.written, head->id);
    job_wake(job);
    return;
  }
  if (is_news(job, text))
    holder_note_failure(job, text);
  job_send(job, job->coordinator_task, &(struct job_message){.kind = JOB_REFUSED, .id = head->id, .is_failure = true});
}

void holder_options(struct job *job) {
  char folder[CHECKPOINT_PATH_MAX];
  if (!job->is_holder || !*job->options.folder || job->seat.keeper)
    return;
  status result = saver_folder(job->task->program, job->options.folder, folder, sizeof folder);
  if (result == OK)
    result = keeper_create(job->task, folder, job->options.keep, on_done, job, &job->seat.keeper);
  if (result == OK)
    result = list_files(job);
  if (result != OK) {
    job_fail(job, result, status_text());
    return;
  }
  note_latest(job);
  if (job->coordinator)
    gone_read(job);
}

static void remove_newer(struct job *job, uint64_t id) {
  struct job_seat *seat = &job->seat;
  for (uint32_t i = seat->files.count; i-- > 0;)
    if (seat->files.items[i].id > id) {
      if (keeper_discard(seat->keeper, seat->files.items[i].name) != OK)
        holder_note_failure(job, status_text());
      forget_file(seat, seat->files.items[i].id);
    }
}

static bool is_initialised(struct job *job) {
  struct ledger ledger = {0};
  bool is = commit_ledger(job->task, &ledger) == OK && ledger.initialised;
  ledger_deinit(&ledger);
  return is;
}

static void tell(struct job *job, enum job_kind kind, uint64_t id) {
  job_send(job, job->coordinator_task, &(struct job_message){.kind = kind, .id = id});
}

/* By the job's thread, as JOIN: what was told before a JOIN is in its list. */
void holder_tell_written(struct job *job) {
  struct job_seat *seat = &job->seat;
  if (!seat->taken.id || seat->is_told || atomic_load(&seat->written) != seat->taken.id)
    return;
  seat->is_told = true;
  tell(job, JOB_DONE, seat->taken.id);
}

/* What waits for COMMIT, too: all may have told, somebody may have left with it, and the coordinator that was about to say so is gone. */
void holder_join(struct job *job, struct job_message *out) {
  const struct job_seat *seat = &job->seat;
  holder_tell_written(job);
  out->has_files = job->is_holder && seat->keeper;
  out->is_initialised = job->is_holder && is_initialised(job);
  bool waits = seat->taken.id && seat->is_told && !FAULT(43);
  uint32_t room = waits ? HISTORY_FILES_MAX - 1 : HISTORY_FILES_MAX, first = seat->files.count > room ? seat->files.count - room : 0;
  for (uint32_t i = first; i < seat->files.count; i++)
    out->files[out->file_count++] = seat->files.items[i].id;
  if (waits)
    out->files[out->file_count++] = seat->taken.id;
}

/* ---- a checkpoint ---- */

static void complete(struct job *job) {
  struct job_seat *seat = &job->seat;
  add_file(seat, seat->taken.id, seat->taken.name);
  for (uint32_t i = 0; i < seat->goal.count; i++)
    if (seat->goal.rows[i].finished)
      cluster_note_finished(job->cluster, seat->goal.rows[i].driver, true);
  if (keeper_complete(seat->keeper, seat->taken.name) != OK)
    holder_note_failure(job, status_text());
  else if (job->on_complete)
    job->on_complete(job->self_of_user, seat->taken.name);
  while ((int64_t)seat->files.count > job->options.keep)
    forget_file(seat, seat->files.items[0].id); /* the folder has deleted it */
  seat->taken = (struct job_file){0};
}

/* What is being written ends first: its files are removed then. */
static void discard(struct job *job, uint64_t id) {
  struct job_seat *seat = &job->seat;
  if (!id || seat->taken.id != id)
    return;
  while (!keeper_wait_idle(seat->keeper, 60000))
    continue;
  if (keeper_discard(seat->keeper, seat->taken.name) != OK)
    holder_note_failure(job, status_text());
  seat->taken = (struct job_file){0};
}

struct frozen {
  struct ledger ledger;
  status result;
};

static void raise_row(void *self, uint32_t task, uint32_t command, uint64_t serial) {
  struct frozen *frozen = self;
  if (frozen->result == OK)
    frozen->result = ledger_raise(&frozen->ledger, task, command, serial);
}

/* What is applied here, or will be: of replicas all steps of the last round, whichever of them have ended. */
static status frozen_ledger(struct job *job, struct ledger *out) {
  struct frozen frozen = {0};
  frozen.result = commit_ledger(job->task, &frozen.ledger);
  if (frozen.result == OK && job->is_replicated && !FAULT(39))
    hall_each_taken(job->task->hall, raise_row, &frozen);
  *out = frozen.ledger;
  return frozen.result;
}

static void freeze(struct job *job, const struct job_message *message) {
  struct ledger ledger = {0};
  struct job_message answer = {
    .kind = JOB_FROZEN, .id = message->id, .number = keeper_number(job->task), .steps = atomic_load(&job->steps)};
  bool is_still = job->seat.history == message->history && job->seat.keeper && !keeper_is_busy(job->seat.keeper) &&
                  (FAULT(9) || commit_freeze(job->task, message->wait_ms));
  if (!is_still || frozen_ledger(job, &ledger) != OK) {
    if (is_still && !FAULT(9))
      commit_thaw(job->task);
    ledger_deinit(&ledger);
    tell(job, JOB_REFUSED, message->id);
    return;
  }
  cut_seat_froze(&job->seat.cut, message->id, monotonic_ms());
  size_t size = ledger_byte_size(&ledger);
  char *bytes = malloc(size + 1);
  if (bytes) {
    ledger_write(&ledger, bytes);
    answer.ledger = bytes;
    answer.ledger_size = size;
    job_send(job, job->coordinator_task, &answer);
  }
  free(bytes);
  ledger_deinit(&ledger);
}

/* Commits of steps that another holder has already. Called with the gate's lock held. */
static bool passes_goal(void *self, uint32_t driver, uint32_t command, uint64_t serial) {
  const struct ledger *goal = self;
  const struct ledger_row *row = ledger_find(goal, driver, serial_lane(serial));
  return row && (row->command > command || (row->command == command && serial_count(serial) <= row->last));
}

/* Replicas: the chief's own step makes the values of a round, those of the others change nothing here. Other tasks: each makes its own; a
 * driver that has no step here yet will have some if it has asked which it has, as it does before its first. */
static bool goal_concerns(const struct job *job, const struct ledger_row *goal, const struct ledger_row *row) {
  if (job->is_replicated)
    return goal->driver == job->self;
  return row || (goal->last > 0 && commit_was_asked(job->task, goal->driver, goal->lane) && !FAULT(47));
}

/* Whether the task has all of the goal. */
static bool has_goal(struct job *job) {
  struct ledger now = {0};
  const struct ledger *goal = &job->seat.goal;
  if (commit_ledger(job->task, &now) != OK)
    return false;
  bool has = true;
  for (uint32_t i = 0; i < goal->count && has; i++) {
    const struct ledger_row *row = ledger_find(&now, goal->rows[i].driver, goal->rows[i].lane);
    bool concerns = goal_concerns(job, &goal->rows[i], row);
    has = !concerns ||
          (row && row->command >= goal->rows[i].command && (row->command > goal->rows[i].command || row->last >= goal->rows[i].last));
  }
  ledger_deinit(&now);
  return has;
}

static bool is_ending(struct job *job) {
  pthread_mutex_lock(&job->lock);
  bool is = job->is_ending;
  pthread_mutex_unlock(&job->lock);
  return is && !FAULT(45);
}

/* Lets those steps pass that it lacks; whether they have come in time. A task that leaves does not stay for them. */
static bool wait_goal(struct job *job, const struct job_message *message) {
  uint64_t until_ms = monotonic_ms() + message->wait_ms;
  if (has_goal(job))
    return true;
  commit_let_pass(job->task, passes_goal, &job->seat.goal);
  bool has = false;
  while (!has && monotonic_ms() < until_ms && !is_ending(job)) {
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    has = has_goal(job);
  }
  commit_let_pass(job->task, NULL, NULL);
  return has && commit_quiet(job->task, message->wait_ms);
}

/* Replicas: all that the round has taken is in the values, also of one that was lost amid it. */
static status raise_others(struct job *job) {
  const struct ledger *goal = &job->seat.goal;
  for (uint32_t i = 0; i < goal->count && job->is_replicated; i++) {
    const struct ledger_row *row = &goal->rows[i];
    uint64_t serial = serial_of(row->lane, row->last);
    if (!commit_has(job->task, row->driver, row->command, serial))
      TRY(commit_other(job->task, row->driver, row->command, serial));
  }
  return OK;
}

static bool reach_goal(struct job *job, const struct job_message *message) {
  return ledger_read(message->ledger, message->ledger_size, &job->seat.goal) == OK && wait_goal(job, message) && raise_others(job) == OK;
}

/* Whose steps all are in this checkpoint, and who leave when it is complete: in the file they have finished. Until then they have not here:
 * one that is killed before it leaves has nothing to begin anew. */
static void mark_finished(struct job *job, bool is_finished) {
  const struct ledger *goal = &job->seat.goal;
  for (uint32_t i = 0; i < goal->count; i++)
    if (goal->rows[i].finished)
      commit_finish(job->task, goal->rows[i].driver, is_finished);
}

static void take(struct job *job, const struct job_message *message) {
  struct job_seat *seat = &job->seat;
  struct note_head head = {.id = message->id, .holders = job->holder_total, .steps = atomic_load(&job->steps)};
  ledger_deinit(&seat->goal);
  seat->goal = (struct ledger){0};
  bool is_taken = FAULT(9) || message->is_uneven || reach_goal(job, message);
  char name[CHECKPOINT_NAME_MAX] = "";
  bool marks = is_taken && !message->is_uneven;
  if (marks)
    mark_finished(job, true);
  status result = is_taken ? keeper_take(seat->keeper, &head, message->number, name) : OK;
  if (marks)
    mark_finished(job, false);
  if (!FAULT(9))
    commit_thaw(job->task);
  cut_seat_took(&seat->cut, is_taken && result == OK);
  if (result != OK)
    holder_note_failure(job, status_text());
  if (!is_taken || result != OK) {
    job_send(job, job->coordinator_task, &(struct job_message){.kind = JOB_REFUSED, .id = message->id, .is_failure = result != OK});
    return;
  }
  seat->is_told = false;
  seat->taken = (struct job_file){.id = message->id};
  memcpy(seat->taken.name, name, sizeof name);
  tell(job, FAULT(12) ? JOB_DONE : JOB_TAKEN, message->id);
}

static void do_duty(struct job *job, const struct cut_duty *duty, const struct job_message *message) {
  if (duty->complete)
    complete(job);
  if (duty->thaw && !FAULT(9))
    commit_thaw(job->task);
  discard(job, duty->discard);
  if (duty->freeze && FAULT(15))
    remove_newer(job, 0);
  if (duty->freeze)
    freeze(job, message);
  if (duty->take)
    take(job, message);
  if (duty->refuse)
    tell(job, JOB_REFUSED, message->id);
}

/* ---- going back ---- */

/* As the task was when it was started, or with the values of a checkpoint of another job. */
static status restore_other(struct job *job, const char *path, struct restored *out) {
  struct task *task = job->task;
  struct arena arena;
  struct restore_source source;
  struct ledger empty = {0};
  TRY(job->seat.is_touched ? restore_nothing(task) : commit_restore(task, &empty)); /* drivers are to ask in any case */
  job->seat.is_touched = true;
  atomic_store(&job->steps, 0);
  if (!*path)
    return OK;
  arena_init(&arena);
  status result = restore_source_find(path, &arena, &source);
  if (result == OK)
    result = restore_task(task, &source, RESTORE_VALUES, out);
  arena_deinit(&arena);
  return result;
}

static status restore_own(struct job *job, uint64_t id, struct restored *out) {
  char prefix[CHECKPOINT_PATH_MAX + CHECKPOINT_NAME_MAX];
  struct job_seat *seat = &job->seat;
  const struct job_file *file = FAULT(10) && seat->files.count ? &seat->files.items[seat->files.count - 1] : find_file(seat, id);
  if (!file)
    return fail(DATA_LOSS, "checkpoint %llx is not in %s any more", (unsigned long long)id, keeper_folder(seat->keeper));
  snprintf(prefix, sizeof prefix, "%s/%s", keeper_folder(seat->keeper), file->name);
  struct restore_source source = {.prefixes = {prefix}, .count = 1};
  seat->is_touched = true;
  TRY(restore_task(job->task, &source, seat->has_served ? RESTORE_BACK : RESTORE_START, out));
  atomic_store(&job->steps, out->head.steps);
  if (keeper_complete(seat->keeper, file->name) != OK)
    holder_note_failure(job, status_text());
  return OK;
}

static void say_restored(const struct job *job, const struct job_message *message, const struct restored *restored) {
  if (restored->missing)
    job_say(job, "%s has no value for %s%s: initialised anew", message->id ? "the checkpoint" : message->text, restored->names,
            restored->missing > 8 ? " and others" : "");
}

static void note_restored(struct job *job) {
  struct ledger steps = {0};
  if (commit_ledger(job->task, &steps) == OK)
    note_finished(job, &steps);
  ledger_deinit(&steps);
}

/* A checkpoint says who was to leave with it. Who was lost before it had left has not finished: what is started again under its name goes
 * on with the same command. Who has left for good has: one that was let go with an earlier checkpoint may not have said so here when this
 * one was made. */
static void begin_unfinished(struct job *job, const struct job_message *message) {
  struct ledger steps = {0}, gone = {0};
  bool is_told = ledger_read(message->ledger, message->ledger_size, &gone) == OK && commit_ledger(job->task, &steps) == OK;
  for (uint32_t i = 0; i < steps.count && is_told && !FAULT(42); i++) {
    uint32_t driver = steps.rows[i].driver;
    const struct ledger_row *row = ledger_find(&steps, driver, 0), *left = ledger_find(&gone, driver, 0);
    commit_finish(job->task, driver, left && (!row || row->command == left->command));
  }
  ledger_deinit(&steps);
  ledger_deinit(&gone);
}

static void restore(struct job *job, const struct job_message *message) {
  struct job_seat *seat = &job->seat;
  struct restored restored = {0};
  struct cut_duty duty = cut_seat_restore(&seat->cut);
  if (duty.thaw && !FAULT(9))
    commit_thaw(job->task);
  if (seat->keeper)
    while (!keeper_wait_idle(seat->keeper, 60000))
      continue;
  if (seat->taken.id) /* it was written, and is complete if the others have it */
    add_file(seat, seat->taken.id, seat->taken.name);
  seat->taken = (struct job_file){0};
  commit_hush(job->task);
  status result = commit_freeze(job->task, RESTORE_FREEZE_MS) ? OK : fail(INTERNAL, "steps do not end");
  if (result == OK) {
    result = message->id ? restore_own(job, message->id, &restored) : restore_other(job, message->text, &restored);
    commit_thaw(job->task);
  }
  if (result != OK) {
    struct job_message failed = {.kind = JOB_GIVE_UP, .history = message->history, .is_failure = true};
    snprintf(failed.text, sizeof failed.text, "%s", status_text());
    job_send(job, job->coordinator_task, &failed);
    return;
  }
  say_restored(job, message, &restored);
  if (seat->keeper && !FAULT(10))
    remove_newer(job, message->id);
  if (seat->keeper)
    keeper_warm(seat->keeper);
  seat->has_served = seat->is_touched = true;
  note_restored(job);
  begin_unfinished(job, message);
  seat->history = message->history;
  cluster_set_history(job->cluster, message->history); /* what is applied from now on is of it */
  task_reset_rounds(job->task);
  commit_serve(job->task, message->history);
  job_send(job, job->coordinator_task,
           &(struct job_message){
             .kind = JOB_RESTORED, .history = message->history, .steps = atomic_load(&job->steps), .is_initialised = is_initialised(job)});
}

void holder_message(struct job *job, const struct job_message *message) {
  struct cut_duty duty = {0};
  if (!job->is_holder)
    return;
  switch (message->kind) {
  case JOB_FREEZE: duty = cut_seat_freeze(&job->seat.cut, message->newest); break;
  case JOB_SNAP: duty = cut_seat_snap(&job->seat.cut, message->id); break;
  case JOB_COMMIT: duty = cut_seat_commit(&job->seat.cut, message->id); break;
  case JOB_ABORT: duty = cut_seat_abort(&job->seat.cut, message->id); break;
  case JOB_RESTORE: restore(job, message); return;
  case JOB_RUN:
    job->seat.has_served = job->seat.is_touched = true;
    job->seat.history = message->history;
    commit_serve(job->task, message->history); /* a history that goes on: nothing was to be restored */
    return;
  default: return;
  }
  do_duty(job, &duty, message);
}

void holder_tick(struct job *job, uint64_t now_ms) {
  holder_tell_written(job);
  struct cut_duty duty = cut_seat_tick(&job->seat.cut, now_ms);
  do_duty(job, &duty, NULL);
}
