/* guest.c: our part of steps that other tasks drive, and what else the exchange tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/memory/container.h"
#include "runtime/program/fault.h"
#include "runtime/program/size.h"
#include "runtime/resource/collective.h"
#include "runtime/resource/meeting.h"
#include "runtime/step/crew.h"
#include "runtime/step/step_stats.h"
#include "runtime/step/task_state.h"
#include "runtime/step/tokens.h"
#include "runtime/step/transfer.h"

/* ---- what the exchange tells ---- */

/* Our part of a step that another task drives: runs on a thread of the crew. */
struct guest {
  struct step step;
  struct part *part;
};

/* The driver is connected with everybody, but two others need not be connected with each other yet. */
static status guest_wait_peers(const struct guest *guest) {
  struct task *task = guest->step.task;
  struct program_range tasks = program_entry(task->program, guest->step.entry)->tasks;
  if (!task->wait_peers || tasks.count < 2)
    return OK;
  return task->wait_peers(task->wait_peers_self, program_operands(task->program, tasks.first), tasks.count);
}

static void send_stats(struct guest *guest) {
  struct task *task = guest->step.task;
  struct tensor *tensor = step_stats_take(guest->step.stats);
  if (tensor)
    task->exchange->send(task->exchange->self, guest->step.driver, guest->step.id, TRANSFER_STATS + task->program->task, tensor);
  step_stats_destroy(guest->step.stats);
  guest->step.stats = NULL;
}

/* Under the lock. An earlier step of the same stream has not ended: its driver was lost, or has given it up, after it
 * had begun to change something. */
static bool has_predecessor(const struct step *step) {
  for (const struct step *other = step->next; other; other = other->next) {
    bool is_stream = other->driver == step->driver && serial_lane(other->serial) == serial_lane(step->serial);
    if (step->serial > 0 && other->serial > 0 && is_stream)
      return true;
    if (step->is_once && other->is_once && other->driver != step->task->program->task)
      return true;
  }
  return false;
}

/* Steps of one stream take turns: whether this one counts is known when the one before has ended. */
static status await_turn(struct step *step) {
  struct task *task = step->task;
  pthread_mutex_lock(&task->lock);
  task->turns_awaited++;
  while (has_predecessor(step) && !atomic_load(&step->cancelled))
    pthread_cond_wait(&task->changed, &task->lock);
  task->turns_awaited--;
  pthread_mutex_unlock(&task->lock);
  return atomic_load(&step->cancelled) ? fail(CANCELLED, "the step was cancelled") : OK;
}

static status guest_begin(struct guest *guest) {
  struct step *step = &guest->step;
  if (step->serial > 0 || step->is_once)
    TRY(await_turn(step));
  TRY(guest_wait_peers(guest));
  return commit_judge(&step->task->commit, step);
}

static void fail_step(struct step *step, status code) {
  char text[2048];
  snprintf(text, sizeof text, "%s", status_text());
  step_fail(step, code, text);
}

static void guest_run_part(struct guest *guest) {
  uint32_t count = guest->part->symbol_count;
  int64_t *symbols = malloc(((size_t)count + 1) * sizeof *symbols);
  for (uint32_t i = 0; symbols && i < count; i++)
    symbols[i] = SYMBOL_UNBOUND;
  if (symbols)
    part_run_reporting(guest->part, &guest->step, symbols);
  else
    fail_step(&guest->step, fail(RESOURCE_EXHAUSTED, "no memory"));
  free(symbols);
}

static void guest_report(struct guest *guest) {
  struct task *task = guest->step.task;
  /* For the driver, who has not been told to stop, this task is lost. */
  char stopping[TASK_REASON_BYTES + 300];
  bool is_lost = guest->step.code == CANCELLED && atomic_load(&task->stopping);
  task_stopping_text(task, stopping, sizeof stopping);
  task->exchange->done(task->exchange->self, guest->step.driver, guest->step.id, is_lost ? UNAVAILABLE : guest->step.code,
                       is_lost ? stopping : guest->step.text);
}

/* While it is in the list others may still fail it. */
static bool is_well(struct step *step) {
  pthread_mutex_lock(&step->task->lock);
  bool is_well = step->code == OK;
  pthread_mutex_unlock(&step->task->lock);
  return is_well;
}

static void guest_run(void *argument) {
  struct guest *guest = argument;
  struct task *task = guest->step.task;
  if (FAULT(20))
    guest_report(guest);
  status begun = guest_begin(guest);
  if (begun == OK && guest->part)
    guest_run_part(guest);
  else if (begun == OK)
    begun = step_commit(&guest->step);
  if (begun != OK)
    fail_step(&guest->step, begun);
  if (is_well(&guest->step))
    step_notify(&guest->step);
  if (guest->step.stats)
    send_stats(guest);
  step_leave(task, &guest->step);
  rendezvous_end(task->rendezvous, guest->step.id);
  if (!FAULT(20))
    guest_report(guest);
  free(guest);
}

static struct part *own_part(struct task *task, uint32_t number, bool is_partial) {
  if (number >= task->program->tables[PROGRAM_ENTRIES].count)
    return NULL;
  const struct program_entry *entry = program_entry(task->program, number);
  if (is_partial && !entry->partial)
    return NULL;
  for (uint32_t i = 0; i < entry->parts.count; i++)
    if (task->parts[entry->parts.first + i].code->task == task->program->task)
      return &task->parts[(is_partial ? entry->partial - 1 : entry->parts.first) + i];
  return NULL;
}

/* True: the task is stopping, and the driver knows. */
static bool refuses_steps(struct task *task, uint32_t driver, uint64_t id) {
  char text[TASK_REASON_BYTES + 300];
  if (!atomic_load(&task->stopping))
    return false;
  task_stopping_text(task, text, sizeof text);
  task->exchange->done(task->exchange->self, driver, id, UNAVAILABLE, text);
  return true;
}

static void on_start(void *self, uint32_t driver, uint64_t id, uint32_t flagged, uint32_t command, uint64_t serial) {
  struct task *task = self;
  uint32_t entry = flagged & ~START_FLAGS;
  if (refuses_steps(task, driver, id))
    return;
  struct part *part = own_part(task, entry, flagged & START_PARTIAL);
  bool is_counted = serial > 0 && entry < task->program->tables[PROGRAM_ENTRIES].count; /* also where it has no part: to count the same */
  struct guest *guest = part || is_counted ? calloc(1, sizeof *guest) : NULL;
  if (!guest) {
    task->exchange->done(task->exchange->self, driver, id, part || is_counted ? RESOURCE_EXHAUSTED : INTERNAL,
                         part || is_counted ? "no memory" : "no such entry here");
    return;
  }
  guest->part = part;
  guest->step.task = task;
  guest->step.id = id;
  guest->step.entry = entry;
  guest->step.driver = driver;
  guest->step.command = command;
  guest->step.serial = serial;
  guest->step.is_once = flagged & START_ONCE;
  atomic_init(&guest->step.parts_left, 1);
  guest->step.reports_memory = flagged & START_REPORTS_MEMORY;
  if (flagged & START_TRACED)
    step_stats_create(task, &guest->step.stats); /* without memory it is not recorded */
  step_enter(task, &guest->step);
  if (atomic_load(&task->stopping))
    step_fail(&guest->step, CANCELLED, "the task is stopping");
  if (crew_run(task->crew, guest_run, guest) == OK)
    return;
  step_leave(task, &guest->step);
  step_stats_destroy(guest->step.stats);
  free(guest);
  if (!refuses_steps(task, driver, id)) /* whose crew may have closed since */
    task->exchange->done(task->exchange->self, driver, id, RESOURCE_EXHAUSTED, status_text());
}

/* Only values of steps that a third task drives may come before we have heard of the step. */
static bool may_be_early(const struct task *task, uint32_t from, uint64_t step) {
  uint32_t driver = (uint32_t)(step >> 48);
  return driver != from && driver != task->program->task;
}

static void on_tensor(void *self, uint32_t from, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  struct task *task = self;
  enum rendezvous_early early = transfer >= TRANSFER_STATE     ? EARLY_KEPT /* we have asked for it, it has no step */
                              : may_be_early(task, from, step) ? EARLY_COUNTED
                                                               : EARLY_DROPPED;
  rendezvous_deliver(task->rendezvous, step, transfer, tensor, early);
}

static status admits(void *self, uint32_t from, uint64_t step, uint32_t transfer, enum dtype dtype, const struct shape *shape) {
  struct task *task = self;
  TRY(transfer_check(task->transfers, &(struct transfer_claim){from, transfer, step, dtype, *shape}));
  uint64_t bytes = (uint64_t)shape_count(shape) * dtype_size(dtype);
  return !may_be_early(task, from, step) || rendezvous_has_room(task->rendezvous, step, bytes)
         ? OK
         : fail(RESOURCE_EXHAUSTED, "values for steps that have not begun hold too much");
}

/* Under the task's lock. */
static void note_report(struct step *step, uint32_t from) {
  const struct program *program = step->task->program;
  const struct program_range tasks = program_entry(program, step->entry)->tasks;
  for (uint32_t i = 0; i < tasks.count && i < STEP_REPORTS; i++)
    if (program_operands(program, tasks.first)[i] == from)
      step->reported[i] = true;
}

static void on_done(void *self, uint32_t from, uint64_t id, status code, const char *text) {
  struct task *task = self;
  if (code != OK)
    step_fail_by_id(task, id, code, text); /* the step cannot end before its `waiting` falls below */
  pthread_mutex_lock(&task->lock);
  struct step *step = step_find(task, id);
  if (step)
    note_report(step, from);
  bool is_last = step && step->waiting > 0 && --step->waiting == 0;
  pthread_mutex_unlock(&task->lock);
  if (is_last)
    pthread_cond_broadcast(&task->changed); /* after the lock, or who wakes would at once wait again, for it */
}

static void on_cancel(void *self, uint64_t id) { step_fail_by_id(self, id, CANCELLED, "the driver gave the step up"); }

static void tell_of_peers(struct task *task) {
  if (task->on_peers)
    task->on_peers(task->on_peers_self);
}

static bool entry_needs(const struct program *program, uint32_t entry, uint32_t peer) {
  const struct program_range tasks = program_entry(program, entry)->tasks;
  for (uint32_t i = 0; i < tasks.count; i++)
    if (program_operands(program, tasks.first)[i] == peer)
      return true;
  return false;
}

/* Under the task's lock. A bit for each task that a step of ours has a part at, beside `peer`. */
static void find_others(const struct task *task, uint32_t peer, uint64_t others[LIMIT_TASKS / 64]) {
  for (const struct step *step = task->steps; step; step = step->next) {
    if (step->driver != task->program->task || !entry_needs(task->program, step->entry, peer))
      continue;
    const struct program_range tasks = program_entry(task->program, step->entry)->tasks;
    for (uint32_t i = 0; i < tasks.count; i++) {
      uint32_t other = program_operands(task->program, tasks.first)[i];
      others[other / 64] |= UINT64_C(1) << other % 64;
    }
  }
}

/* Steps that need who gives up will come to nothing: they wait for none of the others who are cut off. */
static void on_left(void *self, uint32_t peer, bool gave_up) {
  struct task *task = self;
  task->finishing[peer] = false;
  if (!gave_up || !task->exchange->hurry)
    return;
  uint64_t others[LIMIT_TASKS / 64] = {0};
  pthread_mutex_lock(&task->lock);
  find_others(task, peer, others);
  pthread_mutex_unlock(&task->lock);
  for (uint32_t i = 0; i < LIMIT_TASKS; i++)
    if (others[i / 64] >> i % 64 & 1)
      task->exchange->hurry(task->exchange->self, i);
}

/* Its steps end, but those that have begun to change something: they run on. */
static void on_lost(void *self, uint32_t lost, const char *reason) {
  struct task *task = self;
  hall_lose(task->hall, lost);
  for (;;) {
    pthread_mutex_lock(&task->lock);
    struct step *step = task->steps;
    while (step && !(step->driver == lost && !atomic_load(&step->cancelled)))
      step = step->next;
    uint64_t id = step ? step->id : 0;
    pthread_mutex_unlock(&task->lock);
    if (!step)
      break;
    step_fail_by_id(task, id, UNAVAILABLE, reason);
  }
  if (task->finishing[lost]) /* killed before it had left: whoever starts it again wants what it was told to do, not the
                                same again */
    commit_finish(task, lost, false);
  task->finishing[lost] = false;
  rendezvous_drop_early(task->rendezvous, lost);
  tell_of_peers(task);
}

static void leave_collective(void *driver, struct resource *resource) {
  collective_leave((struct collective *)resource, *(const uint32_t *)driver);
}

void task_note_finished(struct task *task, uint32_t finished) {
  const char *job = program_text(task->program, program_task(task->program, finished)->job);
  if (strcmp(job, program_text(task->program, task->program->replicated_job)) != 0)
    return;
  container_each(task->container, "collective", leave_collective, &finished); /* replicas meet in collectives, */
  tokens_leave(task, finished);                                               /* or give to accumulators */
  hall_finish(task->hall, finished);
}

static void on_finished(void *self, uint32_t finished) {
  ((struct task *)self)->finishing[finished] = true;
  commit_finish(self, finished, true);
  task_note_finished(self, finished);
}

static void on_joined(void *self, uint32_t peer, bool is_new) {
  if (is_new)
    hall_begin(((struct task *)self)->hall, peer);
  tell_of_peers(self);
}

bool task_somebody_finished(struct task *task) { return hall_somebody_finished(task->hall); }
void task_reset_rounds(struct task *task) {
  hall_reset(task->hall);
  tokens_reset(task);
}

struct missing {
  uint32_t task;
  char text[600];
};
static void lose_member(void *missing, struct resource *resource) {
  collective_lose((struct collective *)resource, ((struct missing *)missing)->task, ((struct missing *)missing)->text);
}

/* Groups of the graph's own have all replicas as members. */
static void look_for_replicas(struct task *task) {
  const char *job = program_text(task->program, task->program->replicated_job);
  for (uint32_t i = 0; *job && i < task->program->tables[PROGRAM_TASKS].count; i++) {
    struct missing missing = {.task = i};
    if (strcmp(program_text(task->program, program_task(task->program, i)->job), job) == 0 &&
        hall_misses(task->hall, i, missing.text, sizeof missing.text))
      container_each(task->container, "collective", lose_member, &missing);
  }
}

static void on_tick(void *self) {
  struct task *task = self;
  hall_tick(task->hall);
  look_for_replicas(task);
  tokens_tick(self);
}

static void on_reset(void *self, const char *containers) { task_reset(self, containers); }

/* Not the driver's failure, nor a signal's: who ends the process says why. */
static void on_refused(void *self) { task_stop(self); }

struct exchange_sink task_sink(struct task *task) {
  return (struct exchange_sink){.self = task,
                                .on_start = on_start,
                                .on_tensor = on_tensor,
                                .on_done = on_done,
                                .on_cancel = on_cancel,
                                .on_lost = on_lost,
                                .on_finished = on_finished,
                                .on_reset = on_reset,
                                .on_joined = on_joined,
                                .on_tick = on_tick,
                                .on_refused = on_refused,
                                .on_left = on_left,
                                .admits = admits};
}
