/* job.c: a job's thread: messages in the order they come, and the clock. */
#include "runtime/checkpoint/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/checkpoint/job_state.h"
#include "runtime/cluster/cluster.h"
#include "runtime/cluster/control.h"
#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"
#include "runtime/step/task_state.h"

#define JOIN_AGAIN_MS 200 /* until the coordinator has answered */
#define TICK_MS 50
#define QUIET_TICK_MS 1000
#define LAST_CUT_MS 10000 /* for a last checkpoint */
#define HASTY_CUT_MS 3000 /* of a job that has failed, or is stopped */

uint64_t job_random(void) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = monotonic_ms() * UINT64_C(0x9e3779b97f4a7c15);
  return number ? number : 1;
}

void job_say(const struct job *job, const char *format, ...) {
  char line[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  fprintf(stderr, "%s: %s\n", cluster_task_name(job->cluster, job->self), line);
}

/* ---- messages ---- */

static void deliver(struct job *job, uint32_t from, const void *data, size_t size) {
  struct job_letter *letter = malloc(sizeof *letter + size);
  if (!letter)
    return; /* as if it were lost: who waits for it gives up */
  *letter = (struct job_letter){.from = from, .size = size};
  memcpy(letter->data, data, size);
  pthread_mutex_lock(&job->lock);
  if (job->last)
    job->last->next = letter;
  else
    job->first = letter;
  job->last = letter;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
}

static void on_control(void *self, uint32_t from, const void *data, size_t size) { deliver(self, from, data, size); }

bool job_send(struct job *job, uint32_t to, const struct job_message *message) {
  struct wire_buffer bytes = {0};
  bool is_sent = false;
  job_message_write(message, &bytes);
  if (!bytes.is_bad && to == job->self) {
    deliver(job, to, bytes.data, bytes.size);
    is_sent = true;
  } else if (!bytes.is_bad) {
    is_sent = cluster_send_control(job->cluster, to, CONTROL_CHECKPOINT, bytes.data, bytes.size);
  }
  wire_buffer_free(&bytes);
  return is_sent;
}

void job_wake(struct job *job) {
  pthread_mutex_lock(&job->lock);
  job->is_due = true;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
}

void job_fail(struct job *job, status code, const char *text) {
  pthread_mutex_lock(&job->lock);
  bool is_first = job->failure == OK;
  if (is_first) {
    job->failure = code;
    snprintf(job->failure_text, sizeof job->failure_text, "%.1023s", text);
    pthread_cond_broadcast(&job->changed);
  }
  pthread_mutex_unlock(&job->lock);
  if (is_first)
    job->on_failed(job->self_of_user);
}

static void tell_join(struct job *job, uint64_t now_ms) {
  struct job_message join = {.kind = JOB_JOIN, .life = job->life, .has_phases = job->has_phases};
  pthread_mutex_lock(&job->lock);
  join.history = job->history;
  join.is_gone = job->is_gone;
  bool may_leave = job->may_leave;
  pthread_mutex_unlock(&job->lock);
  for (uint32_t i = 0; i < job->task_count; i++)
    if (i == job->self ? job->has_phases && may_leave : cluster_had_finished(job->cluster, i))
      join.finished[i / 64] |= UINT64_C(1) << i % 64;
  join.has_options = job->has_options;
  join.options = job->options;
  holder_join(job, &join);
  job->asked_ms = job_send(job, job->coordinator_task, &join) ? now_ms : 0;
}

void job_set_options(struct job *job, const struct job_options *options) {
  if (options != &job->options)
    job->options = *options;
  job->has_options = true;
  pthread_mutex_lock(&job->lock);
  job->keeps = *job->options.folder;
  pthread_mutex_unlock(&job->lock);
  holder_options(job);
}

/* What another task was given. */
static void take_options(struct job *job, const struct job_message *message) {
  if (!message->has_options)
    return;
  job_set_options(job, &message->options);
  tell_join(job, monotonic_ms());
}

static void take_run(struct job *job, const struct job_message *message) {
  pthread_mutex_lock(&job->lock);
  bool is_news = job->history != message->history;
  bool had_one = job->history != 0;
  job->history = message->history;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
  if (!is_news)
    return;
  cluster_set_history(job->cluster, message->history);
  if (*message->text && (had_one || job->is_holder))
    job_say(job, "%s", message->text);
}

static void take_message(struct job *job, uint32_t from, const struct job_message *message) {
  switch (message->kind) {
  case JOB_ASK: tell_join(job, monotonic_ms()); break;
  case JOB_OPTIONS: take_options(job, message); break;
  case JOB_LEAVE:
    pthread_mutex_lock(&job->lock);
    job->left_with = message->id;
    job->may_leave = message->history == job->leaves_history || (job->is_holder && !job->has_phases);
    bool is_over = job->is_holder && !job->has_phases && !job->is_asking_leave && !job->is_over;
    job->is_over = job->is_over || is_over;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
    if (is_over)
      job->on_over(job->self_of_user);
    break;
  case JOB_RUN:
    take_run(job, message);
    holder_message(job, message);
    break;
  case JOB_NOTED:
    pthread_mutex_lock(&job->lock);
    job->is_gone = true;
    job->gone_command = 0;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
    break;
  case JOB_GIVE_UP:
    if (from == job->coordinator_task && !message->is_failure)
      job_fail(job, message->has_phases ? UNAVAILABLE : DATA_LOSS, message->text);
    else if (job->coordinator)
      coordinator_message(job, from, message);
    break;
  case JOB_RESTORE:
  case JOB_FREEZE:
  case JOB_SNAP:
  case JOB_COMMIT:
  case JOB_ABORT:
    if (from == job->coordinator_task)
      holder_message(job, message);
    break;
  default:
    if (job->coordinator)
      coordinator_message(job, from, message);
    break;
  }
}

/* ---- the thread ---- */

static void tick(struct job *job) {
  uint64_t now_ms = monotonic_ms();
  pthread_mutex_lock(&job->lock);
  bool has_history = job->history != 0, asks_leave = job->is_asking_leave && !job->may_leave;
  uint64_t leaves = job->leaves_history, history = job->history, left_with = job->left_with;
  uint32_t gone = job->gone_command;
  pthread_mutex_unlock(&job->lock);
  if (!has_history && (!job->asked_ms || now_ms - job->asked_ms >= JOIN_AGAIN_MS))
    tell_join(job, now_ms);
  if (asks_leave && (job->asked_leave != leaves || now_ms - job->asked_leave_ms >= TICK_MS)) { /* not with each letter: it is answered */
    job->asked_leave = leaves;
    job->asked_leave_ms = now_ms;
    job_send(job, job->coordinator_task, &(struct job_message){.kind = JOB_LEAVE_ASK, .history = leaves});
  }
  if (gone && now_ms - job->told_gone_ms >= TICK_MS) {
    job->told_gone_ms = now_ms;
    job_send(job, job->coordinator_task, &(struct job_message){.kind = JOB_GONE, .id = left_with, .history = history, .number = gone});
  }
  holder_tick(job, now_ms);
  if (!job->coordinator)
    return;
  coordinator_tick(job, now_ms);
  bool may_end = coordinator_is_empty(job);
  pthread_mutex_lock(&job->lock);
  job->may_end = may_end;
  pthread_mutex_unlock(&job->lock);
}

static uint64_t wake_ms(const struct job *job, uint64_t now_ms) {
  bool is_quiet = job->history && !job->is_asking_leave && !job->gone_command && job->seat.cut.state != SEAT_FROZEN && !job->wants_last;
  uint64_t due_ms = now_ms + (is_quiet ? QUIET_TICK_MS : TICK_MS),
           coordinator_ms = job->coordinator ? coordinator_due_ms(job, now_ms) : UINT64_MAX;
  return coordinator_ms < due_ms ? coordinator_ms : due_ms;
}

/* Under the lock. */
static void wait_letter(struct job *job) {
  uint64_t until_ms = wake_ms(job, monotonic_ms());
  while (!job->first && !job->is_ending && !job->is_due && monotonic_wait(&job->changed, &job->lock, until_ms))
    ;
}

static void *job_main(void *argument) {
  struct job *job = argument;
  struct job_message *message = calloc(1, sizeof *message);
  pthread_mutex_lock(&job->lock);
  while (message && !job->is_ending) {
    wait_letter(job);
    struct job_letter *letter = job->first;
    job->is_due = false;
    if (letter) {
      job->first = letter->next;
      job->last = job->first ? job->last : NULL;
    }
    pthread_mutex_unlock(&job->lock);
    if (letter && job_message_read(letter->data, letter->size, message) == OK)
      take_message(job, letter->from, message);
    free(letter);
    tick(job);
    pthread_mutex_lock(&job->lock);
  }
  pthread_mutex_unlock(&job->lock);
  free(message);
  return NULL;
}

/* ---- waiting ---- */

/* Under the lock, which is given back meanwhile. */
static void wait_a_while(struct job *job, uint64_t wait_ms) { monotonic_wait(&job->changed, &job->lock, monotonic_ms() + wait_ms); }

static status how_it_failed(const struct job *job) {
  if (job->is_stopped)
    return fail(CANCELLED, "the task was stopped");
  return job->failure == OK ? OK : fail(job->failure, "%s", job->failure_text);
}

/* The coordinator, which is asked, must be there. */
static status wait_coordinator(struct job *job) { return cluster_wait_peers(job->cluster, &job->coordinator_task, 1); }

status job_wait(struct job *job) {
  status result = wait_coordinator(job); /* it gives the job up when somebody it needs does not come */
  pthread_mutex_lock(&job->lock);
  job->is_due = true; /* who is to be asked is there: at once, not with the next tick */
  pthread_cond_broadcast(&job->changed);
  while (result == OK && (result = how_it_failed(job)) == OK && job->history == 0) {
    wait_a_while(job, 1000);
    if (job->history)
      break;
    pthread_mutex_unlock(&job->lock);
    result = wait_coordinator(job);
    pthread_mutex_lock(&job->lock);
  }
  pthread_mutex_unlock(&job->lock);
  return result;
}

/* It may have left with its last word, which is on its way through this task: it is lost only after the time-out. */
static status check_coordinator(struct job *job) {
  bool was_up;
  uint64_t missing_ms = cluster_missing_ms(job->cluster, job->coordinator_task, &was_up);
  return missing_ms < job->timeout_ms ? OK : wait_coordinator(job);
}

/* The coordinator stays while others have to ask it. Under the lock. */
static bool may_go(const struct job *job) { return job->may_leave && (!job->coordinator || job->may_end); }

uint64_t job_history(struct job *job) {
  if (!job)
    return 0;
  pthread_mutex_lock(&job->lock);
  uint64_t history = job->history;
  pthread_mutex_unlock(&job->lock);
  return history;
}

status job_leave(struct job *job, uint64_t history) {
  status result = OK;
  pthread_mutex_lock(&job->lock);
  if (!job->keeps) {
    pthread_mutex_unlock(&job->lock);
    return OK;
  }
  job->may_leave = false;
  job->leaves_history = history;
  job->is_asking_leave = job->is_due = true;
  pthread_cond_broadcast(&job->changed);
  while ((result = how_it_failed(job)) == OK && !may_go(job)) {
    if (job->history != history) {
      result = fail(ABORTED, "the job has gone back to an older checkpoint");
      break;
    }
    wait_a_while(job, 200);
    if (may_go(job) || job->first)
      continue;
    pthread_mutex_unlock(&job->lock);
    result = check_coordinator(job);
    pthread_mutex_lock(&job->lock);
    if (result != OK)
      break;
  }
  job->is_asking_leave = false;
  pthread_mutex_unlock(&job->lock);
  return result;
}

/* One that is killed as all are about to end comes back without its state, and needs all holders to say where the job is. Who is in haste
 * does not wait for that. */
static bool coordinator_may_answer(struct job *job, bool is_hasty) {
  bool was_up;
  if (is_hasty || FAULT(49))
    return cluster_is_linked(job->cluster, job->coordinator_task);
  return !cluster_has_left(job->cluster, &job->coordinator_task, 1) &&
         cluster_missing_ms(job->cluster, job->coordinator_task, &was_up) < job->timeout_ms;
}

void job_say_gone(struct job *job, uint32_t command) {
  pthread_mutex_lock(&job->lock);
  job->gone_command = command;
  job->is_due = true;
  pthread_cond_broadcast(&job->changed);
  while (job->gone_command && how_it_failed(job) == OK && coordinator_may_answer(job, false))
    wait_a_while(job, 200);
  job->gone_command = 0;
  pthread_mutex_unlock(&job->lock);
}

/* The coordinator: a last checkpoint, and goes when the others have gone; one that is told to stop does not wait for them, who go on.
 * Under the lock, which is given back meanwhile. */
static void finish_coordinator(struct job *job, bool is_told, uint64_t until_ms) {
  job->wants_last = job->is_due = job->history != 0;
  pthread_cond_broadcast(&job->changed);
  while (how_it_failed(job) == OK && (job->wants_last || !(job->may_end || is_told)) && monotonic_ms() < until_ms)
    wait_a_while(job, 20);
}

static void finish_holder(struct job *job, uint64_t until_ms) {
  bool is_hasty = until_ms != UINT64_MAX;
  job->is_asking_leave = job->is_due = !job->may_leave;
  while (how_it_failed(job) == OK && !job->may_leave && monotonic_ms() < until_ms && coordinator_may_answer(job, is_hasty)) {
    job->leaves_history = job->history;
    pthread_cond_broadcast(&job->changed);
    wait_a_while(job, 20);
  }
  job->is_asking_leave = false;
}

/* A task that was started anew as the others are about to end: what they wait for, and what is to be restored, is not known here yet. */
static void wait_history(struct job *job, uint64_t until_ms) {
  while (how_it_failed(job) == OK && job->history == 0 && monotonic_ms() < until_ms) {
    bool is_somebody_there = false;
    for (uint32_t i = 0; i < job->task_count; i++)
      is_somebody_there = is_somebody_there || (i != job->self && cluster_is_linked(job->cluster, i));
    if (!is_somebody_there)
      return;
    wait_a_while(job, 20);
  }
}

status job_finish(struct job *job, bool is_well) {
  if (!job || !job->has_thread)
    return OK;
  uint64_t until_ms = is_well ? UINT64_MAX : monotonic_ms() + HASTY_CUT_MS;
  pthread_mutex_lock(&job->lock);
  bool was_stopped = job->is_stopped;
  job->is_stopped = false; /* SIGTERM: there is time for a last checkpoint */
  job->may_leave = job->is_over;
  job->is_over = job->is_over || (is_well && job->coordinator);
  if (is_well)
    wait_history(job, monotonic_ms() + LAST_CUT_MS);
  if (job->coordinator && job->keeps)
    finish_coordinator(job, was_stopped, until_ms);
  else if (job->is_holder && job->keeps)
    finish_holder(job, until_ms);
  job->is_stopped = was_stopped;
  pthread_mutex_unlock(&job->lock);
  if (job->seat.keeper)
    keeper_wait_idle(job->seat.keeper, LAST_CUT_MS);
  return job->has_failed ? fail(DATA_LOSS, "saving to %s: %s", job->options.folder, job->failed_text) : OK;
}

bool job_keeps(struct job *job) {
  if (!job)
    return false;
  pthread_mutex_lock(&job->lock);
  bool keeps = job->keeps;
  pthread_mutex_unlock(&job->lock);
  return keeps;
}

bool job_keeps_own(struct job *job) { return job_keeps(job) && job->is_replicated && job->is_holder; } /* set when it is made */

bool job_is_over(struct job *job) {
  if (!job)
    return false;
  pthread_mutex_lock(&job->lock);
  bool is_over = job->is_over;
  pthread_mutex_unlock(&job->lock);
  return is_over;
}

status job_failure(struct job *job) {
  if (!job)
    return OK;
  pthread_mutex_lock(&job->lock);
  status result = job->failure == OK ? OK : fail(job->failure, "%s", job->failure_text);
  pthread_mutex_unlock(&job->lock);
  return result;
}

void job_stop(struct job *job) {
  if (!job)
    return;
  pthread_mutex_lock(&job->lock);
  job->is_stopped = true;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
}

/* ---- life ---- */

static uint32_t first_ps(const struct program *program) {
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count; i++)
    if (program_task(program, i)->index == 0 && strcmp(program_text(program, program_task(program, i)->job), "ps") == 0)
      return i;
  return program->chief;
}

/* All have copies of the variables: the chief keeps them for all. */
static bool is_replicated(const struct program *program) {
  const char *job = program_text(program, program_task(program, program->chief)->job);
  bool is_one = strcmp(job, program_text(program, program->replicated_job)) == 0;
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count; i++)
    if ((program_task(program, i)->flags & PROGRAM_TASK_HOLDS) && i != program->chief)
      return false;
  return is_one;
}

static status read_options(struct job *job, const struct saver_config *config) {
  struct job_options *o = &job->options;
  job->has_options = config->folder || config->restore;
  o->save_steps = config->save_steps;
  o->save_ms = (int64_t)(config->save_seconds * 1000);
  o->keep = config->keep ? config->keep : SAVER_KEEP;
  int folder = snprintf(o->folder, sizeof o->folder, "%s", config->folder ? config->folder : "");
  int restore = snprintf(o->restore, sizeof o->restore, "%s", config->restore ? config->restore : "");
  return folder < CHECKPOINT_FOLDER_MAX && restore < CHECKPOINT_PATH_MAX ? OK
                                                                         : fail(INVALID_ARGUMENT, "--checkpoint-dir, --restore: too long");
}

static void on_commit(void *self) {
  struct job *job = self;
  int64_t steps = atomic_fetch_add_explicit(&job->steps, 1, memory_order_relaxed) + 1;
  if (steps == atomic_load_explicit(&job->due_steps, memory_order_relaxed))
    job_wake(job);
}

status job_create(struct task *task, struct cluster *cluster, const struct job_config *config, struct job **out) {
  const struct program *program = task_program(task);
  struct job *job = calloc(1, sizeof *job);
  if (!job)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  job->task = task;
  job->life = job_random();
  job->cluster = cluster;
  job->self = program->task;
  job->task_count = (uint32_t)program->tables[PROGRAM_TASKS].count;
  job->coordinator_task = first_ps(program);
  job->chief = program->chief;
  job->is_holder = program_task(program, job->self)->flags & PROGRAM_TASK_HOLDS;
  job->is_replicated = is_replicated(program);
  job->has_phases = config->has_phases;
  job->timeout_ms = (uint64_t)(config->timeout_s * 1000);
  job->on_failed = config->on_failed;
  job->on_complete = config->on_complete;
  job->self_of_user = config->self;
  job->on_over = config->on_over;
  for (uint32_t i = 0; i < job->task_count; i++)
    job->holder_total += (program_task(program, i)->flags & PROGRAM_TASK_HOLDS) != 0;
  pthread_mutex_init(&job->lock, NULL);
  monotonic_cond_init(&job->changed);
  status result = read_options(job, &config->given);
  if (result == OK && job->self == job->coordinator_task)
    result = coordinator_create(job);
  if (result != OK) {
    job_destroy(job);
    return result;
  }
  cluster_on_control(cluster, CONTROL_CHECKPOINT, on_control, job);
  if (job->is_holder) {
    commit_hush(task); /* before anybody can ask, or bring a step */
    commit_watch(task, on_commit, job);
  }
  *out = job;
  return OK;
}

status job_start(struct job *job) {
  if (job->has_options)
    job_set_options(job, &job->options); /* a folder that cannot be written is known before anything is computed */
  if (job->failure != OK)
    return fail(job->failure, "%s", job->failure_text);
  if (pthread_create(&job->thread, NULL, job_main, job) != 0)
    return fail(RESOURCE_EXHAUSTED, "no thread for checkpoints");
  job->has_thread = true;
  return OK;
}

void job_close(struct job *job) {
  if (!job)
    return;
  pthread_mutex_lock(&job->lock);
  job->is_ending = true;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->lock);
  if (job->has_thread)
    pthread_join(job->thread, NULL);
  job->has_thread = false;
  keeper_destroy(job->seat.keeper);
  job->seat.keeper = NULL;
  holder_tell_written(job); /* it may have been a slow disk */
}

void job_destroy(struct job *job) {
  if (!job)
    return;
  job_close(job);
  while (job->first) {
    struct job_letter *letter = job->first;
    job->first = letter->next;
    free(letter);
  }
  vec_free(&job->seat.files);
  ledger_deinit(&job->seat.goal);
  coordinator_destroy(job);
  pthread_cond_destroy(&job->changed);
  pthread_mutex_destroy(&job->lock);
  free(job);
}
